"""The look after a launch: within a minute each started agent has shown that it works, or why not.

An agent shows itself by a session of its own in the journal, and its first cell by the first line
of its log. One that has ended before, has left its reasons in its own log on the box.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from boxcar.laptop.run.condition import sets_up, waits_for_cell
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.open_run import OpenRun, Tell
from boxcar.laptop.run.view import QueueView
from boxcar.shared import state, timestamp
from boxcar.shared.errors import BoxcarError, Command, Message, message_of
from boxcar.shared.process import end_reason
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import Session

PROBE_S = 60.0
# Bash, the profile's hook and the interpreter come before the agent's first word.
SILENT_S = 15.0
# What no box tells as news, such as a job that waits, is seen after this.
MOST_BETWEEN_LOOKS_S = 5.0
_LOG_LINES = 15


@dataclass(frozen=True)
class Started:
    """An agent that was started just now; `before` is the session that the journal had by then."""

    queue: str
    box: str
    before: Session | None
    at_s: float  # of the monotonic clock


@dataclass(frozen=True)
class Sign:
    """What an agent has shown of itself, in words, and whether it works."""

    is_good: bool
    message: Message


def probe(run: OpenRun, started: Sequence[Started], tell: Tell) -> list[Message]:
    """Wait until every started agent has shown that it works; what is wrong, in sentences.

    All of them are looked at at once. `tell` hears of each as soon as it has shown itself.
    """
    problems: list[Message] = []
    waiting = list(started)
    deadline = time.monotonic() + PROBE_S
    while waiting:
        run.refresh()
        view = look_at_run(run, timestamp.utc_now())
        for one in list(waiting):
            sign = _sign(run, one, view.queue(one.queue), tell)
            if sign is None:
                continue
            tell(sign.message.under(one.queue))
            if not sign.is_good:
                problems.append(sign.message.under(one.queue))
            waiting.remove(one)
        if not waiting or time.monotonic() >= deadline:
            break
        run.await_news(run.tick_s, MOST_BETWEEN_LOOKS_S)
    for one in waiting:
        queue = view.queue(one.queue)
        if text := sets_up(queue) or waits_for_cell(queue):
            tell(Message(text).under(one.queue))  # as its line says: its agent is well
            continue
        problems.append(_in_vain(one, queue).under(one.queue))
        tell(problems[-1])
    return problems


def _in_vain(one: Started, queue: QueueView) -> Message:
    """An agent may be well and have a reason to wait, such as a disk that is full."""
    if queue.session is None or queue.session == one.before:
        return Message(_("its agent did not report within {probe_s:.0f} s", probe_s=PROBE_S))
    return Message(
        _(
            "its agent runs, but started no cell within {probe_s:.0f} s. To see why",
            probe_s=PROBE_S,
        ),
        Command("status"),
    )


def _sign(run: OpenRun, one: Started, queue: QueueView, tell: Tell) -> Sign | None:
    try:
        return _seen(run, one, queue)
    except BoxcarError as error:
        tell(message_of(error))  # the link broke off: asked again at the next look
        return None


def _seen(run: OpenRun, one: Started, queue: QueueView) -> Sign | None:
    """Whether the agent works, and what it does; None while this cannot be told yet."""
    session = queue.session
    if session and session != one.before and session.by == end_reason.TURN:
        return Sign(
            True,
            Message(_("its first task ended with its cell; the next task runs the next cell")),
        )
    if session and session != one.before and session.by == end_reason.SIGNAL and _has_job(queue):
        # Its time limit came, or it was preempted: Slurm starts it again.
        job = queue.scheduled
        return Sign(True, Message(job.sentence)) if job and job.is_explained else None
    if queue.scheduled and not queue.is_alive:
        # What the journal says is newer than what the scheduler said half a minute ago.
        has_begun = session is not None and session != one.before
        if has_begun or not queue.scheduled.is_explained:
            return None
        return Sign(not queue.scheduled.need, Message(queue.scheduled.sentence))
    if session is None or session == one.before:
        is_gone = queue.is_alive is False and time.monotonic() - one.at_s > SILENT_S
        return _failed(run, one) if is_gone else None
    if session.ended:
        return _ended(run, one, queue)
    if queue.is_alive is False:
        return _failed(run, one)
    if queue.active is None:
        waits = Sign(True, Message(_("its agent is running and waits for lines")))
        return waits if run.plan.linger_s else None
    if _is_from_before(queue, session):
        return None
    if run.has_output(one.box, queue.active):
        box = run.box_label(one.box)
        return Sign(True, Message(_("running {cell} on {box}", cell=queue.active, box=box)))
    return None


def _is_from_before(queue: QueueView, session: Session) -> bool:
    """Whether the active cell is an earlier agent's, and nothing shows yet that it lives."""
    assert queue.state and queue.active
    now = queue.state.cells[queue.active].state
    is_adopted = queue.is_cell_alive is True or isinstance(now, (state.Succeeded, state.Synced))
    return not is_adopted and not isinstance(now, state.Queued) and now.at < session.at


def _has_job(queue: QueueView) -> bool:
    """Whether a scheduler has one for it, which outlives its agent."""
    return bool(queue.scheduled or queue.is_alive)


def _ended(run: OpenRun, one: Started, queue: QueueView) -> Sign:
    assert queue.session and queue.state
    if queue.session.ended != "queue.done":
        return _failed(run, one)
    if queue.session.reason:
        skipped = Message(
            _("done, but some lines were not run: {reason}", reason=queue.session.reason)
        )
        return Sign(False, skipped)
    failed = [name for name, now in queue.state.cells.items() if now.state.word == "failed"]
    if failed:
        done = Message(
            _("done, with failed cells ({failed})", failed=", ".join(failed)), Command("status")
        )
        return Sign(False, done)
    return Sign(True, Message(_("done")))


def _failed(run: OpenRun, one: Started) -> Sign:
    tail = run.agent_log(one.box, one.queue, _LOG_LINES)
    ended = _(
        "its agent on {box} has ended. The end of its log there:\n{tail}", box=one.box, tail=tail
    )
    return Sign(False, Message(ended))
