"""At each look: the news of those endpoints that the job says are sent by this machine.

How far each is lies in `.boxcar/told/`, as the boxes have it of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from boxcar.laptop.common.home import Home
from boxcar.laptop.news.sender import Sender, is_within_rate
from boxcar.laptop.project.notify.endpoints import LAPTOP
from boxcar.laptop.project.notify.targets import Target, targets
from boxcar.laptop.run import undelivered
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared.channels.answer import key_of
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered


def begin(run: OpenRun, view: RunView, environ: Mapping[str, str]) -> None:
    """From now on news counts: what comes later is sent, also where nobody looks for hours."""
    _at_each(run, view, environ, is_to_send=False)


def send(run: OpenRun, view: RunView, environ: Mapping[str, str]) -> list[str]:
    """Send what waits; sentences of what a service refuses. Never raises what a service does."""
    return _at_each(run, view, environ, is_to_send=True)


def _at_each(
    run: OpenRun, view: RunView, environ: Mapping[str, str], *, is_to_send: bool
) -> list[str]:
    job = run.project.job
    if not any(line.chat and line.chat[1].place == LAPTOP for line in job.notify):
        return []
    try:
        found = [one for one in targets(job, environ) if one.place == LAPTOP and one.endpoint]
        sender = Sender(run.project, environ) if is_to_send else None
        return [told for queue in view.queues for told in _of_queue(run, queue, found, sender)]
    except (BoxcarError, OSError) as error:
        return [str(error)]


def _of_queue(
    run: OpenRun, queue: QueueView, found: list[Target], sender: Sender | None
) -> list[str]:
    path = Home(run.project.root).told(run.plan.run, queue.name)
    atomic.make_folder(path.parent)
    # Another look may be at it: one is enough.
    held = lock.try_hold(path.with_suffix(".lock"))
    if held is None:
        return []
    try:
        known = delivered.read(path)
        for one in found:
            known = _moved(queue, one, known, sender)
            atomic.write_whole(path, codec.to_document(known))
        sent = Delivered(
            {key_of(o.endpoint): known.endpoints[key_of(o.endpoint)] for o in found if o.endpoint}
        )
        return list(undelivered.sentences(queue.name, queue.events, sent, is_lingering=None))
    finally:
        os.close(held)


def _moved(queue: QueueView, one: Target, known: Delivered, sender: Sender | None) -> Delivered:
    assert one.endpoint
    key, events = key_of(one.endpoint), queue.events
    cursor = known.endpoints.get(key)
    if cursor is None:
        cursor = Cursor(events[-1].seq if events else 0, channel=one.channel)
    elif sender and is_within_rate(one.channel, cursor):
        cursor = sender.send(one, events, cursor)
    return replace(known, endpoints=known.endpoints | {key: cursor})
