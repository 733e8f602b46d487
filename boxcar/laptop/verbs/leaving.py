"""Agents that are about to end when `launch` comes: a lock that is held is no work yet.

A drain is taken back, so that its agent goes on. A stop has begun to end what runs, so its end is
waited for, and `launch` starts another one then. Where an agent goes on, it is looked at once more:
it may have been just leaving. Nothing is written but the orders that are taken back, so a `launch`
that is interrupted here leaves all as it was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.common.units import duration
from boxcar.laptop.run.first_minute import PROBE_S
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs import control
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import message_of
from boxcar.shared.files.control import DRAIN, RUN, STOP
from boxcar.shared.message import Command, Message, some

LOOKS_AGAIN_S = 3.0
# A grace of a minute, a large result that is settled, and a second home that does not answer.
LEAVES_WITHIN_S = 1200.0
_MOST_NAMED = 4


def until_left(site: Site, view: RunView, queues: Sequence[str]) -> RunView:
    """The view once nobody of these queues is about to end, as far as that can be seen."""
    view = _until(site, view, queues, _delivers_after_its_end, PROBE_S)
    _take_back_drains(site, [queue for queue in _of(view, queues) if _is_asked(queue, DRAIN)])
    if stopping := [queue.name for queue in _of(view, queues) if is_stopping(queue)]:
        named = some(stopping, _MOST_NAMED)
        show.say(Sentence("orders.waits_for_end", queues=named, n=len(stopping)))
        view = _until(site, view, queues, is_stopping, LEAVES_WITHIN_S)
    if any(queue.is_alive for queue in _of(view, queues)):
        time.sleep(LOOKS_AGAIN_S)
        view = _look_again(site)
    return view


def is_stopping(queue: QueueView) -> bool:
    """Whether its agent was asked to end at once, and has not yet."""
    return _is_asked(queue, STOP)


def does_not_end(queue: QueueView) -> Message:
    return Message(Sentence("orders.does_not_end", queue=queue.name), Command("launch"))


def _is_asked(queue: QueueView, want: str) -> bool:
    return bool(queue.is_alive and queue.wanted == want)


def _delivers_after_its_end(queue: QueueView) -> bool:
    """Whether a `watch` holds it, which delivers late webhooks."""
    return bool(queue.is_alive and queue.session and queue.session.ended)


def _of(view: RunView, queues: Sequence[str]) -> list[QueueView]:
    return list(map(view.queue, queues))


def _take_back_drains(site: Site, queues: Sequence[QueueView]) -> None:
    by_name = {queue.name: queue.box for queue in queues}
    done, errors = side_by_side.each_or_why(
        by_name, lambda name: control.write_control(site, by_name[name], name, RUN)
    )
    for name in done:
        show.say(Sentence("orders.drain_taken_back", queue=name))
    for name, error in errors.items():
        show.say(message_of(error).under(name))


def _until(
    site: Site,
    view: RunView,
    queues: Sequence[str],
    is_about_to_end: Callable[[QueueView], bool],
    most_s: float,
) -> RunView:
    """The view once no queue is; or after that time."""
    began = time.monotonic()
    left = [queue.name for queue in _of(view, queues) if is_about_to_end(queue)]
    if not left:
        return view
    with show.progress(Sentence("how_far.leaving"), THINGS) as bar:
        part = bar.part(len(left))
        while left and time.monotonic() - began < most_s:
            time_s = duration(time.monotonic() - began)
            names = some(left, _MOST_NAMED)
            part.doing = Sentence("how_far.leaves", queues=names, time=time_s)
            time.sleep(site.boxes.tick_s)
            view = _look_again(site)
            ended = [name for name in left if not is_about_to_end(view.queue(name))]
            left = [name for name in left if name not in ended]
            part.add(len(ended))
    return view


def _look_again(site: Site) -> RunView:
    site.boxes.refresh(is_exact=True)
    return look_at_run(site, timestamp.utc_now())
