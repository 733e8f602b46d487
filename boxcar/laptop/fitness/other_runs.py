"""Who else is at work on a box that a run is to start on: two trainings on one GPU are no good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.common import side_by_side
from boxcar.laptop.fitness.rules import Row, Verdict
from boxcar.laptop.fitness.tier_check import Ask
from boxcar.shared.cell import visible_gpus
from boxcar.shared.cell.visible_gpus import Devices
from boxcar.shared.errors import some
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.box_asks import OtherRun, OthersSeen

WHAT = "other runs"
_MOST_NAMED = 4


@dataclass(frozen=True)
class Mine:
    """The GPUs that the run sees, where it names them, and whether its cells take free ones, each
    for itself.
    """

    devices: Devices | None = None
    takes_free_gpus: bool = False


def gpus_of_run(plan: Plan) -> Mine:
    return Mine(visible_gpus.of_plan(plan), plan.gpus_per_cell is not None)


def check(ask: Ask, boxes: Sequence[str], mine: Mine, verdict: Verdict) -> list[Row]:
    """A row for each box on which somebody is in the way of who sees these GPUs; `ask` is as
    `OpenRun.ask`. A box that does not answer is said to by who asks it for more.
    """
    seen, _silent = side_by_side.each_or_why(boxes, lambda box: ask(box, box_asks.SeeOthers()))
    return judge(seen, mine, verdict)


def judge(seen: Mapping[str, OthersSeen], mine: Mine, verdict: Verdict) -> list[Row]:
    """The same of what boxes have said."""
    found = {box: in_the_way(one, mine) for box, one in seen.items()}
    return [
        Row(
            box,
            WHAT,
            verdict,
            some(names, _MOST_NAMED),
            _(
                "two trainings on one GPU are slow or run out of memory; keep them apart with "
                "gpus_per_cell in both jobs, or env: CUDA_VISIBLE_DEVICES"
            ),
        )
        for box, names in found.items()
        if names
    ]


def in_the_way(seen: OthersSeen, mine: Mine) -> list[str]:
    """Not those of which both sides say by name which GPUs they use, and none is the same; nor a
    run of which both sides take free GPUs alone, under locks that all runs on the box share.
    """
    runs: list[str] = [
        _("{run} ({what})", run=other.run, what=at_work(other))
        for other in seen.runs
        if other.is_at_work
        and not (mine.takes_free_gpus and other.takes_free_gpus)
        and not visible_gpus.are_apart(mine.devices, other.devices)
    ]
    strangers: list[str] = [
        _("{program} (process {pid} of {user})", program=who.program, pid=who.pid, user=who.user)
        for who in seen.strangers
        if not visible_gpus.are_apart(mine.devices, who.devices)
    ]
    return runs + strangers


def at_work(other: OtherRun) -> str:
    """Its agents, else its attempts: `q1, q2`."""
    return some(other.queues or other.cells, _MOST_NAMED)
