"""What runs out next for a run, as far as its own files know. Pure.

While agents are at work that is their last cell. After them it is how long boxes have cost money
for nothing. What a platform does to a box that is off (a wipe, a release) counts from a moment that
nobody tells us; `explain` and the board have it in words.
"""

from __future__ import annotations

from boxcar.laptop.common import units
from boxcar.laptop.run import time_left
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence


def nearest_clock(view: RunView, *, is_billed: bool) -> Sentence | None:
    """None where nothing is known."""
    idle_s = [_idle_s(queue, view.at) for queue in view.queues if not may_run(queue)]
    known = [seconds for seconds in idle_s if seconds is not None]
    if is_billed and known:
        return Sentence("runs.idle_for", time=units.about(max(known)))
    left_s = _left_s(view)
    return Sentence("runs.ends_in", time=units.about(left_s)) if left_s else None


def left_by_queue(view: RunView) -> dict[str, float | None]:
    """The seconds until each queue's last cell ends; None where one of them is unknown."""
    return time_left.queues_left_s(view, time_left.cells_left_s(view))


def _left_s(view: RunView) -> float | None:
    """Until the last of the queues that are at work ends."""
    left = left_by_queue(view)
    found = [left[queue.name] for queue in view.queues if may_run(queue)]
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if known and len(known) == len(found) else None


def _idle_s(queue: QueueView, now: str) -> float | None:
    """Since the last word of its agent."""
    if not queue.events:
        return None
    return timestamp.seconds_between(queue.events[-1].at, now, queue.clock_ahead_s)
