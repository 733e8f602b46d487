"""`invoke up`: rent the boxes that the job names, once, and bring each as far as `audit`.

What can be known before is known before: all that stands in the way is listed at once, then the sum
is shown, and a person says yes once. Each box has its record on the disk before it is asked for
(`providers/rent.py`), so an `up` that was killed goes on when it is typed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.hosts.ssh_aliases import read_aliases
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers import known
from boxcar.laptop.providers.gone import end_until_gone, look_at_box, stop_until_stopped
from boxcar.laptop.providers.provider import (
    Offer,
    Provider,
)
from boxcar.laptop.providers.rent import (
    boot_limit_s,
    settle_intent,
)
from boxcar.laptop.providers.rented_record import (
    RentedBox,
    folder_of,
    note,
    record_of_alias,
    records_of,
)
from boxcar.laptop.providers.ssh_config import write_ssh_config
from boxcar.laptop.verbs.audit import audit
from boxcar.laptop.verbs.box_deadline import lay_deadlines
from boxcar.laptop.verbs.deal import Asked, is_agreed, make_deal
from boxcar.laptop.verbs.offers import rentable
from boxcar.laptop.verbs.rent_boxes import Renting, bring_up, raise_gravest, rent_all
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    Message,
    TemporaryError,
    message_of,
)
from boxcar.shared.sentence import _


def up(
    project: Project,
    *,
    boxes: int | None = None,
    most_rate: float | None = None,
    hours: float | None = None,
    is_spot: bool = False,
    approve: str | None = None,
    replace: str = "",
) -> int:
    """Returns what `audit` does; 1 where nothing was rented. Raises InputError with all blockers,
    MayStillBillError where a box may bill that nobody has seen end.
    """
    for flag, number in (("--boxes", boxes), ("--hours", hours)):
        if number == 0:
            raise InputError(_("{flag} 0 rents nothing: leave it out, or type more", flag=flag))
    asked = Asked(boxes, most_rate, hours, is_spot, approve)
    name = rentable(project.profile, project.root)
    provider = known.open_provider(name)
    with _alone():
        if replace:
            _make_way(provider, project, replace)
        _go_on(provider, project)
        _say_unlisted(provider, project)
        wanted = _wanted(project, asked, replace)
        if wanted:
            deal = make_deal(provider, project, wanted, asked)
            if deal is None or not is_agreed(deal, asked, provider, project.profile):
                return 1
            rent_all(Renting(provider, project, deal, asked))
        if any(one.is_in_use for one in records_of(project.root)):
            with open_site(project, show.say) as site:
                lay_deadlines(site, [box.name for box in project.plan.boxes])
        _offer_include(project)
    return audit(project)


@contextmanager
def _alone() -> Iterator[None]:
    """Of this person on this machine: two would rent for the same box."""
    folder = folder_of()
    atomic.make_folder(folder)
    fd = lock.hold(folder / ".up.lock")
    if fd is None:
        raise TemporaryError(_("another `up` is at work on this machine. Wait for its end"))
    try:
        yield
    finally:
        os.close(fd)


# --- what an earlier `up` has left


def _go_on(provider: Provider, project: Project) -> None:
    """Orders of this project without an answer are looked for, boxes that are not up are waited
    for, each of them whatever came of the others. Nothing new is rented here.
    """
    errors: list[BoxcarError] = []
    for record in _own_records(provider, project):
        try:
            _go_on_with(provider, project, record)
        except BoxcarError as error:
            errors.append(error)
    raise_gravest(errors)


def _go_on_with(provider: Provider, project: Project, record: RentedBox) -> None:
    if record.state == "asked":
        show.say(_("{box}: looking for the box of an earlier order", box=record.box))
        with show.waiting(_("asking {title}", title=provider.title)):
            record = settle_intent(provider, record, show.say)
        if record.state == "closed":
            show.say(
                _(
                    "{box}: {title} has never listed that order ({label}); it counts as not "
                    "rented. `orphans` finds it, should it show up later",
                    box=record.box,
                    title=provider.title,
                    label=record.label,
                )
            )
    if record.state == "rented" and record.end_asked_at and not record.gone_at:
        _finish_end(provider, record)
    elif record.state == "rented" and record.up_at is None:
        show.say(_("{box}: {id} is there, waiting for it", box=record.box, id=record.id))
        bring_up(provider, project, record, boot_limit_s(_unknown_offer(record)))


def _say_unlisted(provider: Provider, project: Project) -> None:
    """Boxes that somebody else has ended, or the provider has lost: ssh would only say that nobody
    answers. Lists lag, so nothing is concluded from it.
    """
    up = [one for one in _own_records(provider, project) if one.is_in_use]
    if not up:
        return
    try:
        with show.waiting(_("asking {title}", title=provider.title)):
            listed = {one.id for one in provider.list_boxes() if one.state != "gone"}
    except BoxcarError as error:
        show.say(message_of(error))
        return
    for one in up:
        if one.id not in listed:
            what = _(
                "{box}: {title} does not list {id}; it may have been ended elsewhere. For another "
                "box in its place",
                box=one.box,
                title=provider.title,
                id=one.id,
            )
            show.alarm(Message(what, Command("up", ("--replace", one.box))))


def _own_records(provider: Provider, project: Project) -> list[RentedBox]:
    """Raises InputError for one of another account's key, whose word nobody can hear."""
    found = [one for one in records_of(project.root) if one.provider == provider.name]
    for one in found:
        if one.key != provider.access.fingerprint:
            raise InputError(
                _(
                    "{box} was rented with another key of {title} (fingerprint {there}, this one "
                    "has {here}). Use that key",
                    box=one.box,
                    title=provider.title,
                    there=one.key,
                    here=provider.access.fingerprint,
                )
            )
    return found


def _finish_end(provider: Provider, record: RentedBox) -> None:
    with show.waiting(_("ending {id}, and looking until it is gone", id=record.id)):
        end_until_gone(provider, record.id, has_seen=bool(record.seen_at), tell=show.say)
    note(record, "gone_at")


def _unknown_offer(record: RentedBox) -> Offer:
    return Offer(record.provider, "", record.gpu, record.gpus, record.offered)


# --- what is missing, and what it costs


def _wanted(project: Project, asked: Asked, replace: str) -> list[str]:
    """Boxes of the plan without an address, as many as are missing to the number that was typed.
    Raises InputError where the job names fewer.
    """
    if replace:
        return [replace] if record_of_alias(project.root, replace) is None else []
    named = [box.name for box in project.plan.boxes]
    theirs = {*read_aliases(Path.home() / ".ssh" / "config")}
    free = [
        box for box in named if box not in theirs and record_of_alias(project.root, box) is None
    ]
    if asked.boxes is None:
        return free
    if asked.boxes <= len(named):
        return free[: max(0, asked.boxes - (len(named) - len(free)))]
    raise InputError(
        _(
            "--boxes {n}: {job} names {named} {named:box|boxes}. Name more under queues: a pool "
            "takes several, such as queues/all.txt: [box-a, box-b, box-c]",
            n=asked.boxes,
            job=project.job.at("queues"),
            named=len(named),
        )
    )


# --- in the place of one that is lost


def _make_way(provider: Provider, project: Project, box: str) -> None:
    """The old box is gone, or was stopped by us and seen stopped; its record steps aside. It is
    never destroyed here: its disk may hold what nobody pulled.
    """
    project.scratch(box)  # raises for a box that is not in the plan
    old = record_of_alias(project.root, box)
    if old is None or old.state != "rented":
        return
    _own_records(provider, project)
    with show.waiting(_("asking {title}", title=provider.title)):
        look = look_at_box(provider, old.id)
    if look.is_gone and old.seen_at:
        with show.waiting(_("looking again at {id}", id=old.id)):
            end_until_gone(provider, old.id, has_seen=True, tell=show.say, may_end=False)
        note(old, "gone_at", "replaced_at", end_because=old.end_because or "lost")
        return
    if look.box is not None and look.box.state == "stopped" and provider.has_stop:
        # One that the market stopped starts again by itself, and two would train the same cells.
        with show.waiting(_("stopping {id}, and looking twice", id=old.id)):
            stop_until_stopped(provider, old.id)
        note(old, "stopped_at", "replaced_at")
        show.say(
            _(
                "{box}: {id} is stopped and keeps its disk, which bills until you destroy it: "
                "{console}",
                box=box,
                id=old.id,
                console=provider.console,
            )
        )
        return
    why = look.doubt or (_("it is {word}", word=look.box.word) if look.box else "")
    raise InputError(
        _(
            "--replace {box}: {id} is neither gone nor stopped ({why}), so it may go on with the "
            "cells. Stop or end it in the console ({console}), then repeat this",
            box=box,
            id=old.id,
            why=why,
            console=provider.console,
        )
    )


def _offer_include(project: Project) -> None:
    path = write_ssh_config(project.root)
    if path is None:
        return
    line = f"Include {path}"
    config = Path.home() / ".ssh" / "config"
    try:
        is_there = line in config.read_text("utf-8", "replace").splitlines()
    except OSError:
        is_there = False
    if not is_there:
        show.say(
            _(
                "for `ssh BOX` in a shell of your own, put this as the first line of {config}: "
                "{line}",
                config=config,
                line=line,
            )
        )
