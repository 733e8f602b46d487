"""Whose each listed box is: the provider's list against the records of this machine. Pure.

Ours is what bears our stamp or label. A stranger's box is counted and never named to an end.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.providers.provider import Listed
from boxcar.laptop.providers.rented_record import RentedBox
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class OwnBox:
    """A box of ours. `is_orphan`: it bills and no live record stands for it, or nothing goes on
    with it; `is_here`: it was rented from this machine.
    """

    provider: str
    id: str
    label: str
    state: str
    gpu: str
    rate: float | None
    currency: str
    run: str
    box: str
    is_orphan: bool
    is_here: bool
    why: str


@dataclass(frozen=True)
class Whose:
    """`unlisted`: records that are live, of which the list has no box."""

    ours: tuple[OwnBox, ...]
    strangers: int
    unlisted: tuple[RentedBox, ...]

    @property
    def orphans(self) -> tuple[OwnBox, ...]:
        return tuple(one for one in self.ours if one.is_orphan)


def sort_boxes(listed: Sequence[Listed], records: Sequence[RentedBox]) -> Whose:
    """`records` are those of the listed account, whatever their state."""
    by_id = {one.id: one for one in records if one.id}
    by_nonce = {one.nonce: one for one in records}
    ours, found, strangers = [], set(), 0
    for box in listed:
        if box.state == "gone":
            continue
        record = by_id.get(box.id) or by_nonce.get(box.nonce)
        if record is not None:
            found.add(record.nonce)
            ours.append(_own(box, record))
        elif box.is_ours:
            why = _("rented from another machine, or its record is lost")
            ours.append(_row(box, box.label, "", is_orphan=False, is_here=False, why=why))
        else:
            strangers += 1
    live = [one for one in records if one.state != "closed" and one.nonce not in found]
    return Whose(tuple(ours), strangers, tuple(live))


def open_orders(records: Sequence[RentedBox]) -> list[RentedBox]:
    """Those that may bill with nobody at work on them, as the records alone have it: no provider
    is asked.
    """
    return [
        one
        for one in records
        if one.state == "asked"
        or (one.state == "rented" and (one.up_at is None or one.end_asked_at or one.replaced_at))
    ]


def _own(box: Listed, record: RentedBox) -> OwnBox:
    why = _why_orphan(box, record)
    is_orphan = bool(why)
    if not why:
        why = _("in use")
    elif record.end_because and not record.gone_at:
        why = _("{why} ({because})", why=why, because=record.end_because)
    return _row(box, record.run, record.box, is_orphan=is_orphan, is_here=True, why=why)


def _why_orphan(box: Listed, record: RentedBox) -> str:
    if record.id and record.id != box.id:
        return _("a second box of one order")
    if record.state == "asked":
        return _("its create was never answered")
    if record.gone_at or record.refused_at or record.missing_at:
        return _("its record is closed, and yet it is listed")
    if record.end_asked_at:
        return _("its end was asked for, and is not confirmed")
    if record.up_at is None:
        return _("it never came up")
    return ""


def _row(box: Listed, run: str, alias: str, *, is_orphan: bool, is_here: bool, why: str) -> OwnBox:
    return OwnBox(
        box.provider,
        box.id,
        box.label,
        box.state,
        box.gpu,
        box.rate,
        box.currency,
        run,
        alias,
        is_orphan=is_orphan,
        is_here=is_here,
        why=why,
    )
