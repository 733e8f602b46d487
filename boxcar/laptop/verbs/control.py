"""What drain and stop share: a request to the agents of a run, in each queue's control file.

The laptop writes the file, the agent obeys it, and the next launch sets it back to `run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.common.units import duration
from boxcar.laptop.places.site import Site
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.laptop.run.first_minute import MOST_BETWEEN_LOOKS_S, PROBE_S
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.news import warnings
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    Message,
    NoRoomError,
    TemporaryError,
    message_of,
    some,
)
from boxcar.shared.files.control import DRAIN, RUN, STOP, Control
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.news.wanted import BOX_ENDS
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks


def request(
    site: Site,
    want: str,
    queues: Sequence[str] | None = None,
    boxes: Sequence[str] | None = None,
) -> list[QueueView]:
    """Ask the agents of these queues and boxes (default: all); the queues that were asked.

    Where nothing runs, and no box is about to end, nothing is written: the next launch would meet a
    request that was meant for an agent of the past. Raises InputError for an unknown name, before
    anything is written, and what keeps a box from being asked; all others were asked then.
    """
    if is_torn_down(site.results):
        # The boxes may be somebody else's by now.
        raise InputError(_("run {run!r} was torn down; nothing is running", run=site.plan.run))
    with show.waiting(_("asking the boxes")):
        site.refresh()
    view = look_at_run(site, timestamp.utc_now())
    named = [view.queue(name) for name in _known(view, queues, boxes)]
    ending = {name for name, event in warnings(view) if event.data.get("what") == BOX_ENDS}
    asked = [queue for queue in named if queue.is_alive is not False or queue.name in ending]
    waiting = [queue for queue in named if queue.scheduled and want == STOP]
    for queue in named:
        if queue not in (*asked, *waiting):
            show.say(_("{queue}: nothing is running; nothing to do", queue=queue.name))
    done, errors = side_by_side.each_or_why(
        [queue.name for queue in asked],
        lambda name: write_control(site, reached_by(site, view.queue(name)), name, want),
    )
    if waiting:
        _call_off(site, waiting)
    if errors:
        raise _not_asked(want, list(done), errors)
    return asked


def _call_off(site: Site, waiting: Sequence[QueueView]) -> None:
    """The jobs that wait. Raises what `boxes.ask` raises."""
    tasks = site.call_off([queue.name for queue in waiting])
    if tasks:
        about = _(
            "cancelled before {n:it|they} started: {tasks}. To submit {n:it|them} again, with the "
            "limits set then",
            tasks=", ".join(tasks),
            n=len(tasks),
        )
        show.say(Message(about, Command("launch")))
    for queue in waiting:
        if queue.scheduled and queue.scheduled.task not in tasks:
            show.say(
                _(
                    "{queue}: job {task} is no longer pending, so it was not cancelled. Run the "
                    "same command again to ask its agent",
                    queue=queue.name,
                    task=queue.scheduled.task,
                )
            )


def _not_asked(want: str, asked: Sequence[str], errors: Mapping[str, Exception]) -> BoxcarError:
    """One error of all, of the kind that they have in common."""
    others = _("no queue was asked")
    if asked:
        others = _("{queues} {n:was|were} asked", queues=", ".join(asked), n=len(asked))
    messages = [
        message_of(error).under(
            _(
                "{queue} could not be asked to {want} ({others}); run the same command again",
                queue=name,
                want=want,
                others=others,
            )
        )
        for name, error in errors.items()
    ]
    common = (InputError, NoRoomError, TemporaryError)
    kinds = (kind for kind in common if all(isinstance(e, kind) for e in errors.values()))
    return next(kinds, BoxcarError)(messages)


def write_control(site: Site, box: str, queue: str, want: str) -> None:
    """Have the box write the queue's control file. Raises what `boxes.ask` raises."""
    site.ask(box, run_asks.WriteControl(queue, Control(want, timestamp.utc_now())))


def reached_by(site: Site, queue: QueueView) -> str:
    """The box that writes the file: for a box that has left the plan another one of its tier."""
    if site.is_planned(queue.box):
        return queue.box
    if site.plan.durable_scope == EACH_BOX:
        raise InputError(
            _(
                "{queue} ran on {box}, which is no longer in the job, so it cannot be reached. "
                "Put it back under queues in job.yaml",
                queue=queue.name,
                box=queue.box,
            )
        )
    return site.reach_tiers([box.name for box in site.plan.boxes])[0]


def _known(view: RunView, queues: Sequence[str] | None, boxes: Sequence[str] | None) -> list[str]:
    run = the_run(view.run)
    named = pick(queues or (), view.by_queue_or_file, what="queue", of=run)
    there = pick(boxes or (), [queue.box for queue in view.queues], what="box", of=run)
    chosen = [queue.name for name in named for queue in view.by_queue_or_file[name]]
    chosen += [queue.name for queue in view.queues if queue.box in there]
    return list(dict.fromkeys(chosen or [queue.name for queue in view.queues]))


# Agents that are about to end when `launch` comes: a lock that is held is no work yet.
#
# A drain is taken back, so that its agent goes on. A stop has begun to end what runs, so its end is
# waited for, and `launch` starts another one then. Where an agent goes on, it is looked at once
# more: it may have been just leaving. Nothing is written but the orders that are taken back, so a
# `launch` that is interrupted here leaves all as it was asked for.


LOOKS_AGAIN_S = 3.0
# A grace of a minute, a large result that is settled, and a second home that does not answer.
LEAVES_WITHIN_S = 1200.0
_MOST_WAITED = 4


def until_left(site: Site, view: RunView, queues: Sequence[str]) -> RunView:
    """The view once nobody of these queues is about to end, as far as that can be seen."""
    view = _until(site, view, queues, _delivers_after_its_end, PROBE_S)
    _take_back_drains(site, [queue for queue in _of(view, queues) if _is_asked(queue, DRAIN)])
    if stopping := [queue.name for queue in _of(view, queues) if is_stopping(queue)]:
        named = some(stopping, _MOST_WAITED)
        show.say(
            _(
                "{queues} {n:is|are} stopping; launch waits for that, then starts {n:it|them} "
                "again (Ctrl-C leaves {n:it|them} stopped)",
                queues=named,
                n=len(stopping),
            )
        )
        view = _until(site, view, queues, is_stopping, LEAVES_WITHIN_S)
    if any(queue.is_alive for queue in _of(view, queues)):
        time.sleep(LOOKS_AGAIN_S)
        view = _look_again(site)
    return view


def is_stopping(queue: QueueView) -> bool:
    """Whether its agent was asked to end at once, and has not yet."""
    return _is_asked(queue, STOP)


def does_not_end(queue: QueueView) -> Message:
    return Message(
        _(
            "{queue}: still stopping, so it was not started. Once it has ended",
            queue=queue.name,
        ),
        Command("launch"),
    )


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
        by_name, lambda name: write_control(site, by_name[name], name, RUN)
    )
    for name in done:
        show.say(_("{queue}: drain cancelled; its agent continues", queue=name))
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
    with show.progress(_("waiting for agents to end"), THINGS) as bar:
        part = bar.part(len(left))
        while left and time.monotonic() - began < most_s:
            time_s = duration(time.monotonic() - began)
            names = some(left, _MOST_WAITED)
            part.doing = _("{queues}, {time} so far", queues=names, time=time_s)
            site.await_news(site.tick_s, MOST_BETWEEN_LOOKS_S)
            view = _look_again(site)
            ended = [name for name in left if not is_about_to_end(view.queue(name))]
            left = [name for name in left if name not in ended]
            part.add(len(ended))
    return view


def _look_again(site: Site) -> RunView:
    site.refresh(is_exact=True)
    return look_at_run(site, timestamp.utc_now())
