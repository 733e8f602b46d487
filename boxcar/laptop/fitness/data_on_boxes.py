"""The job's data against what a box has of it, and the room for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import Row, Verdict
from boxcar.shared.disk.checked_copy import SPARE_BYTES
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.data_asks import DataFound, UrlsSeen

WHAT, WHAT_URLS = "job data", "data from URLs"


@dataclass(frozen=True)
class Wanted:
    """A data folder of the job."""

    name: str
    size_bytes: int


def judge_data(data: Mapping[str, Wanted], found_by_box: Mapping[str, DataFound]) -> list[Row]:
    """`data` is the job's, by digest."""
    return [_row(box, data, found) for box, found in found_by_box.items()]


def lacking_bytes(data: Mapping[str, Wanted], found: DataFound) -> int:
    """What is still to be sent there."""
    whole = {one.digest for one in found.folders if not one.problems}
    return sum(one.size_bytes for at, one in data.items() if at not in whole)


def judge_urls(
    urls: Sequence[DataUrl], seen_by_box: Mapping[str, UrlsSeen], to_send: Mapping[str, int]
) -> list[Row]:
    """What each box is to fetch itself; `to_send`: bytes that the laptop sends there beside it."""
    return [_row_of_urls(box, urls, seen, to_send.get(box, 0)) for box, seen in seen_by_box.items()]


def _row_of_urls(box: str, urls: Sequence[DataUrl], seen: UrlsSeen, to_send: int) -> Row:
    by_name = {one.name: one for one in urls}
    lacking = [one for one in seen.urls if not one.is_here]
    if not lacking:
        return Row(box, WHAT_URLS, "ok", _("all of it is there"), "")
    if bad := [one for one in lacking if one.problem]:
        said = "; ".join(f"{one.name}: {one.problem}" for one in bad)
        reason = _("the box cannot fetch it: correct the URL, or the way to it (a proxy, a mirror)")
        return Row(box, WHAT_URLS, "refuse", said, reason)
    unknown = [one.name for one in lacking if one.size_bytes is None]
    # The archive, and at least as much again for what is in it.
    need = sum((one.size_bytes or 0) * (1 + by_name[one.name].unpack) for one in lacking)
    said = _(
        "{size} to fetch, {free} free", size=units.size(need), free=units.size(seen.free_bytes)
    )
    if need + to_send + SPARE_BYTES > seen.free_bytes:
        reason = _(
            "the data does not fit: free some space, expand the disk, or remove data that no run "
            "needs: boxcar data"
        )
        return Row(box, WHAT_URLS, "refuse", said, reason)
    if not unknown:
        return Row(box, WHAT_URLS, "ok", said, "")
    reason = _("size not known before it is fetched: {names}", names=", ".join(unknown))
    return Row(box, WHAT_URLS, "ok", said, reason)


def _row(box: str, data: Mapping[str, Wanted], found: DataFound) -> Row:
    there = {one.digest: one for one in found.folders}
    damaged = [
        (data[at].name, one.problems[0]) for at, one in there.items() if at in data and one.problems
    ]
    lacking = [one for at, one in data.items() if at not in there or there[at].problems]
    to_send = sum(one.size_bytes for one in lacking)
    if not lacking:
        return Row(box, WHAT, "ok", _("all of it is there"), "")
    said = _(
        "{size} to send, {free} free",
        size=units.size(to_send),
        free=units.size(found.free_bytes),
    )
    if to_send + SPARE_BYTES > found.free_bytes:
        reason = _(
            "the data does not fit: free some space, expand the disk, or remove data that no run "
            "needs: boxcar data"
        )
        return Row(box, WHAT, "refuse", said, reason)
    verdict: Verdict = "warn" if damaged else "ok"
    reasons = [
        _("{name} is not whole: {problem}. launch sends it again", name=name, problem=problem)
        for name, problem in damaged
    ]
    return Row(box, WHAT, verdict, said, "; ".join(reasons))
