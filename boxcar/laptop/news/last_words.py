"""Before a teardown: each queue's last news gets a minute, then this machine sends the rest.

News never keeps a run from its end. What goes wrong here is only counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from boxcar.laptop.common import side_by_side
from boxcar.laptop.news.sender import Sender
from boxcar.laptop.project.notify.endpoints import BOX
from boxcar.laptop.project.notify.targets import Target, targets
from boxcar.laptop.run import undelivered
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared.channels.answer import key_of
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import delivered
from boxcar.shared.files.delivered import Delivered
from boxcar.shared.wire import news_asks

# The box itself stops trying after 60.
TIMEOUT_S = 75.0


def due(run: OpenRun, view: RunView, ended: Collection[str]) -> list[QueueView]:
    """The queues with news that an endpoint lacks, but for those of boxes that have `ended`."""
    return [
        queue
        for queue in view.queues
        if queue.box not in ended and is_planned(run, queue.box) and _left(queue, _sent(run, queue))
    ]


def deliver(
    run: OpenRun, queues: Sequence[QueueView], environ: Mapping[str, str]
) -> dict[str, int]:
    """How many events of each nobody has taken in the end. Raises nothing that a box raised."""
    by_name = {queue.name: queue for queue in queues}
    side_by_side.each_or_why(by_name, lambda name: _by_box(run, by_name[name]))
    run.boxes.refresh()
    found = _targets(run, environ)
    sender = Sender(run.project, environ)
    told, _ = side_by_side.each_or_why(
        by_name, lambda name: _from_here(run, by_name[name], found, sender)
    )
    return {
        name: told.get(name, _left(by_name[name], _sent(run, by_name[name]))) for name in by_name
    }


def _by_box(run: OpenRun, queue: QueueView) -> None:
    if queue.session is None or queue.box in run.boxes.silent() or run.boxes.is_gone(queue.box):
        return
    credentials = run.plan.box(queue.box).credentials
    question = news_asks.Deliver(queue.name, queue.session.release, credentials)
    run.boxes.ask(queue.box, question, timeout_s=TIMEOUT_S)


def _from_here(run: OpenRun, queue: QueueView, found: Sequence[Target], sender: Sender) -> int:
    sent = _sent(run, queue)
    endpoints = dict(sent.endpoints)
    for one in found:
        key = key_of(one.endpoint) if one.endpoint else ""
        cursor = endpoints.get(key)
        if cursor is not None and not cursor.disabled:
            endpoints[key] = sender.send(one, queue.events, cursor)
    return _left(queue, Delivered(endpoints))


def _targets(run: OpenRun, environ: Mapping[str, str]) -> list[Target]:
    """Those that boxes send to, as far as their variables are set here."""
    try:
        return [one for one in targets(run.project.job, environ) if one.place == BOX]
    except BoxcarError:
        return []


def _sent(run: OpenRun, queue: QueueView) -> Delivered:
    """Where it cannot be read nothing is known, and nothing is sent twice."""
    try:
        return delivered.read(run.tier.delivered(queue.name))
    except (BoxcarError, OSError):
        return Delivered({})


def _left(queue: QueueView, sent: Delivered) -> int:
    """Where no endpoint is known nobody asked for news."""
    return undelivered.waiting(queue.events, sent) if sent.endpoints else 0
