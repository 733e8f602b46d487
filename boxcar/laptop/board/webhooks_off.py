"""Whether the webhooks that a job asks for are sent by nobody. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.notify.targets import missing_for_boxes
from boxcar.laptop.run.view import RunView

_OVER = ("done", "drained", "stopped", "incomplete")


def webhooks_off(job: Job, view: RunView, environ: Mapping[str, str]) -> str | None:
    """The variable of a URL that is not set, '' where it was not set at launch, or None where
    webhooks are sent, or nobody asked for any, or nothing is left to tell.
    """
    needed = missing_for_boxes(job, environ)
    if not needed or all(queue.condition.word in _OVER for queue in view.queues):
        return None
    beats = [queue.heartbeat for queue in view.queues if queue.is_alive and queue.heartbeat]
    unset = [name for name in needed if name]
    if any(beat.extra.get("webhooks") for beat in beats):
        return None
    if beats:
        return unset[0] if unset else ""
    return unset[0] if len(unset) == len(needed) else None
