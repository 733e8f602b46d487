"""The job's data against what a box has of it, and the room for the rest."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import Row, Verdict
from boxcar.shared.disk.checked_copy import SPARE_BYTES
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.data_asks import DataFound

WHAT = "job data"


@dataclass(frozen=True)
class Wanted:
    """A data folder of the job."""

    name: str
    size_bytes: int


def judge_data(data: Mapping[str, Wanted], found_by_box: Mapping[str, DataFound]) -> list[Row]:
    """`data` is the job's, by digest."""
    return [_row(box, data, found) for box, found in found_by_box.items()]


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
