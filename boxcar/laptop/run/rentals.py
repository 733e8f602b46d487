"""What an hour of each box costs, and when it was rented and seen to end, as this machine knows it.

A price that a person typed comes before the provider's own, which `up` wrote down, and that before
the profile's.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

from boxcar.laptop.common import units
from boxcar.laptop.project.project import Project, box_prices
from boxcar.laptop.providers import rented_record
from boxcar.laptop.providers.known import PROVIDERS
from boxcar.laptop.providers.rented_record import RentedBox
from boxcar.laptop.run.run_cost import Rental, Replaced
from boxcar.shared.cell import duration
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.sentence import Sentence, _


def prices_of_boxes(project: Project) -> dict[str, str]:
    """By box, those that have one, as `1.98 CNY/h`."""
    said = {
        box: units.price_text(one.rate, one.currency)
        for box, one in rented_boxes(project).items()
        if one.rate is not None
    }
    return box_prices(project, said)


def rented_boxes(project: Project) -> dict[str, RentedBox]:
    """The record of each of the run's boxes that was rented from here for it: the newest, and one
    that is live before one that is closed, whatever the clock said.
    """
    records, _damaged = rented_record.read_records()
    ours = [one for one in records if one.run == project.plan.run and one.id]
    return {one.box: one for one in sorted(ours, key=lambda one: one.state != "closed")}


def rentals_of_boxes(project: Project) -> dict[str, Rental]:
    """By box, as far as the records and the teardown say."""
    try:
        teardown = receipt.read_teardown(project.results.teardown)
    except (OSError, DamagedError):
        teardown = None
    rented = rented_boxes(project)
    found = {}
    for box in (known.name for known in project.plan.boxes):
        record = rented.get(box)
        ended_at = _ended_at(teardown, box) or (record.gone_at if record else None)
        is_stopped = bool(teardown and box in teardown.stopped)
        is_off = bool(ended_at) and (is_stopped or _is_off(project))
        off_rate = project.profile.meter.off_price if is_off else None
        gone_at = _gone_at(teardown, box, is_stopped) or (record.gone_at if record else None)
        begun_at, before = record.asked_at if record else None, tuple(_replaced(project, box))
        found[box] = Rental(begun_at, ended_at, off_rate or "", gone_at, before)
    return found


def _replaced(project: Project, box: str) -> Iterator[Replaced]:
    """What stood under this alias before, by `up --replace`; oldest first."""
    records, _damaged = rented_record.read_records()
    under = [one for one in records if (one.run, one.box) == (project.plan.run, box) and one.id]
    for one, after in itertools.pairwise(under):
        if not one.replaced_at:
            continue
        said = {box: units.price_text(one.rate, one.currency)} if one.rate is not None else {}
        off_rate = project.profile.meter.off_price if one.stopped_at else None
        ended_at = one.stopped_at or one.gone_at or one.replaced_at
        rental = Rental(one.asked_at, ended_at, off_rate or "", one.gone_at)
        if price := box_prices(project, said).get(box):
            yield Replaced(one.id, price, after.asked_at, rental)


def stopped_perhaps(project: Project, silent: Collection[str]) -> list[Sentence]:
    """Of boxes that do not answer: those that a deadline may have stopped, whom it told only if a
    chat or an agent was there.
    """
    rented = rented_boxes(project)
    found = [one for box, one in rented.items() if box in silent and one.is_in_use and one.most_s]
    return [
        _(
            "{box} does not answer; its deadline may have stopped it ({quiet} without progress, or "
            "{most} after `up`). Its disk bills then. Look at {console}; if so, start it there, "
            "and launch",
            box=one.box,
            quiet=duration.spell_duration(one.quiet_s),
            most=duration.spell_duration(one.most_s),
            console=PROVIDERS[one.provider].console,
        )
        for one in found
    ]


def _ended_at(teardown: Teardown | None, box: str) -> str | None:
    if teardown is None:
        return None
    seen = (teardown.off, teardown.stopped, teardown.seen_gone, teardown.seen_off)
    return min((times[box] for times in seen if box in times), default=None)


def _gone_at(teardown: Teardown | None, box: str, is_stopped: bool) -> str | None:
    """Since when its disk bills no more. What a person saw end of a box that was never stopped may
    be its GPU alone.
    """
    if teardown is None:
        return None
    return teardown.seen_gone.get(box) or (teardown.seen_off.get(box) if is_stopped else None)


def _is_off(project: Project) -> bool:
    """Whether the verb that ends a run leaves disks that bill."""
    return project.profile.meter.down == "stop"
