"""The end of a run's rented boxes by the provider's API, once Boxcar's own part on them is done.

An id that only the box has said ends nothing. What is ended is in the provider's list, stands there
at the alias's own address or was rented by `up` under it, and a person typed its id. It counts as
ended when the provider has said so twice (`providers/gone.py`), to a key that has seen it alive.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from boxcar.laptop.common import show
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers import known
from boxcar.laptop.providers.gone import end_until_gone, stop_until_stopped
from boxcar.laptop.providers.provider import Doubt, Listed, NoRights, Provider
from boxcar.laptop.providers.rented_record import (
    RentedBox,
    live_records,
    note,
    read_records,
    record_of_alias,
)
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.meters import OpenMeter, open_meters
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    MayStillBillError,
    message_of,
)
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _

_TRIES = 3


@dataclass(frozen=True)
class Ending:
    """One box to be ended: `box` as its provider has it, None where it seems gone; `has_seen`:
    whether this key has seen it alive.
    """

    meter: OpenMeter
    id: str
    box: Listed | None
    record: RentedBox | None
    has_seen: bool


def stopping(project: Project) -> Project:
    """The same, whose boxes `down` has stopped by their provider's API. Raises InputError where
    nobody could do that.
    """
    name = known.provider_of(project.profile, project.root)
    if name is None or project.profile.meter.stop is None or not known.PROVIDERS[name].has_stop:
        raise InputError(
            _(
                "--verb stop: {title} has no stop that Boxcar could ask for. What it has",
                title=project.profile.title,
            ),
            Command("explain", (project.profile.name,)),
        )
    known.open_provider(name)  # raises where there is no key
    return replace(project, profile=project.profile.with_stop_by_api())


def end_meters(site: Site, teardown: Teardown, *, is_stop: bool = False) -> Teardown:
    """The teardown, with those that were seen gone. What cannot be asked or is not agreed to stays
    open, as it was. Never raises. `is_stop`: a person typed that they are to be stopped.
    """
    meters = open_meters(site.project, teardown)
    name = known.provider_of(site.project.profile, site.project.root)
    if not meters or name is None or not known.has_key(name):
        return teardown
    steps = Steps(site.results.teardown, teardown)
    try:
        provider = known.open_provider(name)
        with show.waiting(_("asking {title}", title=provider.title)):
            listed = {one.id: one for one in provider.list_boxes() if one.state != "gone"}
    except BoxcarError as error:
        show.say(message_of(error))
        return teardown
    for meter in meters:
        ending = _ending(site, provider, meter, listed)
        if ending is None:
            continue
        if is_stop and ending.box is not None:
            _stop(provider, ending, steps)
            continue
        # Typed before, for the box to end itself, or approved by a digest that covers it.
        is_typed = teardown.to_destroy.get(meter.box) == ending.id
        is_typed = is_typed and not is_stop
        if ending.box is None or is_typed or _is_agreed(ending, provider):
            _end(provider, ending, steps, may_end=is_typed or ending.box is not None)
    return steps.now


def _ending(
    site: Site, provider: Provider, meter: OpenMeter, listed: dict[str, Listed]
) -> Ending | None:
    """None where nobody can say which of the listed boxes this is."""
    record = record_of_alias(site.project.root, meter.box)
    if record is not None and (record.provider, record.key) == (
        provider.name,
        provider.access.fingerprint,
    ):
        if not record.id:
            return None
        # A list may lack for some seconds what is there.
        box = listed.get(record.id) or _by_id(provider, record.id)
        return Ending(meter, record.id, box, record, has_seen=bool(record.seen_at))
    box = listed.get(meter.id or "")
    if box is None:
        return None
    if _address(meter.box) != (box.host, box.port):
        show.say(
            _(
                "{box}: the box says that it is {id}, which {title} lists at another address than "
                "this alias has. It is not touched",
                box=meter.box,
                id=box.id,
                title=provider.title,
            )
        )
        return None
    return Ending(meter, box.id, box, None, has_seen=True)


def _by_id(provider: Provider, id: str) -> Listed | None:
    """None also where it does not say: then it is only looked at."""
    try:
        box = provider.read_box(id)
    except (Doubt, NoRights):
        return None
    return box if box is not None and box.state != "gone" else None


def _address(alias: str) -> tuple[str, int]:
    """Where ssh itself would go."""
    done = subprocess.run(
        ["ssh", "-G", alias], capture_output=True, text=True, errors="replace", check=False
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    port = said.get("port", "")
    return said.get("hostname", ""), int(port) if port.isdecimal() else 0


def _is_agreed(ending: Ending, provider: Provider) -> bool:
    """The person types the id."""
    assert ending.box is not None
    rate = ending.box.rate
    question = _(
        "Type the id of {box} ({id}{rate}) to destroy it with all on it, by {title}'s API; Enter "
        "leaves that to you: ",
        box=ending.meter.box,
        id=ending.id,
        rate=f", {rate:g} {ending.box.currency}/h" if rate is not None else "",
        title=provider.title,
    )
    for _n in range(_TRIES):
        typed = show.ask(question)
        if typed in ("", ending.id):
            return typed == ending.id
        show.say(_("{typed!r} is not that id; nothing was touched", typed=typed))
    return False


def _stop(provider: Provider, ending: Ending, steps: Steps) -> None:
    """It can be started again, so no id is typed; its meter stays open for its disk."""
    try:
        with show.waiting(_("stopping {id}, and looking twice", id=ending.id)):
            stop_until_stopped(provider, ending.id)
    except MayStillBillError as error:
        show.alarm(message_of(error))
        return
    steps.stopped(ending.meter.box)
    if ending.record is not None:
        note(ending.record, "stopped_at")
    show.say(_("{box}: {id} is stopped, seen twice", box=ending.meter.box, id=ending.id))


def _end(provider: Provider, ending: Ending, steps: Steps, *, may_end: bool) -> None:
    """`may_end`: its id was typed; one that the list lacks is only looked at."""
    record = ending.record
    if record is not None and may_end:
        record = note(record, "end_asked_at", end_because="down")
    others = _others(ending.id)
    try:
        with show.waiting(_("ending {id}, and looking until it is gone", id=ending.id)):
            end_until_gone(
                *(provider, ending.id),
                has_seen=ending.has_seen,
                others=others,
                tell=show.say,
                may_end=may_end,
            )
    except MayStillBillError as error:
        show.alarm(message_of(error))
        return
    # First: killed in between, a record that is open too long does less harm than a meter.
    steps.seen_gone(ending.meter.box)
    if record is not None:
        note(record, "gone_at")
    show.say(_("{box}: {id} is gone, seen twice", box=ending.meter.box, id=ending.id))


def _others(id: str) -> Sequence[str]:
    return [one.id for one in live_records(read_records()[0]) if one.id and one.id != id]
