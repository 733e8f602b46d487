"""What is the matter with a queue, in one word and a sentence. Pure: decided from a view of it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from boxcar.laptop.run.view import Condition, QueueView
from boxcar.shared import ended_by, state, timestamp
from boxcar.shared.files import control
from boxcar.shared.state import Session

STALLED_AFTER_S = 60.0
# Evaluation, a download or a compilation makes no step for minutes, and nothing is wrong.
FROZEN_AFTER_S = 15 * 60.0
FROZEN_AFTER_GAPS = 5
# An agent says every few seconds that its cell runs, and at once that it has ended.
TRAINER_GRACE_S = 30.0


def condition(queue: QueueView, now: str) -> Condition:
    """What is the matter with the queue. Doubt has its own words; it is never called dead."""
    session = queue.session
    if queue.is_damaged:
        return Condition("damaged", "its journal is damaged; nothing after the damage is known")
    if queue.state is None:
        return Condition("unknown", "its journal cannot be read at the moment")
    # Another box may see its lock on a shared tier: that its box is silent is to be said first.
    is_open = queue.is_alive or (queue.is_alive is None and not (session and session.ended))
    if is_open and queue.silent is not None:
        return Condition("unreachable", _unreachable(queue, now))
    if queue.is_alive:
        return _with_agent(queue, session, now)
    if is_open:
        return Condition("unknown", "its lock cannot be asked: the agent may be alive or not")
    return _without_agent(queue, session)


def may_run(queue: QueueView) -> bool:
    """Whether an agent is at work, as far as can be told: doubt counts as one."""
    return bool(queue.is_alive) or queue.condition.word in ("unknown", "unreachable")


def waits_for_cell(queue: QueueView) -> str | None:
    """What its agent said last of a cell that waits for another one, while it still waits."""
    if queue.state is None or queue.session is None:
        return None
    said = [
        str(event.data.get("text"))
        for event in queue.state.warnings
        if event.data.get("what") == "waits_for_cell"
        and event.at >= queue.session.at
        and isinstance(queue.state.cell(event.cell or "").state, state.Queued)
    ]
    return said[-1] if said else None


def heartbeat_age_s(queue: QueueView, now: str) -> float | None:
    return _age_s(queue, queue.heartbeat.at, now) if queue.heartbeat else None


def _age_s(queue: QueueView, at: str, now: str) -> float:
    """How long ago the box's clock said `at`, when the laptop's says `now`."""
    return timestamp.seconds_between(at, now, queue.clock_ahead_s)


def _unreachable(queue: QueueView, now: str) -> str:
    """Not a word on dead: a shared tier may even show that the agent is well."""
    age_s = heartbeat_age_s(queue, now)
    sign = f"; its last heartbeat is {age_s:.0f} s old" if age_s is not None else ""
    return f"{queue.box} does not answer ({queue.silent}){sign}"


def _without_agent(queue: QueueView, session: Session | None) -> Condition:
    if session is None:
        return Condition("not started", "no agent has run it yet")
    if session.ended is None:
        doing = f"while {queue.active} was under way" if queue.active else "between two cells"
        still = "; the cell itself still runs" if queue.is_cell_alive else ""
        return Condition(
            "agent dead",
            f"its agent (process {session.pid} on {session.box}) is gone without a last event, "
            f"{doing}{still}",
        )
    if session.ended == "queue.done":
        if session.reason:
            return Condition("incomplete", f"not every line was run: {session.reason}")
        return Condition("done", "every line was run")
    if session.by == ended_by.DRAIN:
        return Condition("drained", "it finished its cell and ended, as it was asked to")
    return Condition("stopped", session.reason or "it gave no reason")


def _with_agent(queue: QueueView, session: Session | None, now: str) -> Condition:
    if session is None or session.ended:
        return Condition("running", "its agent is starting, or sending its last words")
    # The heartbeat may still be that of the agent before.
    last_sign = max(session.at, queue.heartbeat.at) if queue.heartbeat else session.at
    silent_s = _age_s(queue, last_sign, now)
    if queue.is_cell_alive is False and _unseen_s(queue, now) > TRAINER_GRACE_S:
        return Condition(
            "trainer dead", f"no process of {queue.active} is left, and its agent did not say so"
        )
    if silent_s > STALLED_AFTER_S:
        return Condition(
            "stalled agent", f"its agent holds the lock, but gave no sign for {silent_s:.0f} s"
        )
    still_s, allowed_s = _still_s(queue, now), _allowed_s(queue.steps_at)
    if still_s > allowed_s:
        return Condition(
            "step frozen",
            f"{queue.active} made no step for {still_s:.0f} s (expected one in {allowed_s:.0f} s)",
        )
    return _at_work(queue)


def _at_work(queue: QueueView) -> Condition:
    then = {control.DRAIN: "; it drains: nothing new starts", control.STOP: "; it is stopping"}
    record = queue.state.cells.get(queue.active or "") if queue.state else None
    if record and isinstance(record.state, state.Waiting) and record.state.awaits_room:
        return Condition(
            "no room",
            f"{queue.active} waits for room on {queue.box}: make some, and it continues by itself"
            f"{then.get(queue.wanted, '')}",
        )
    if queue.active:
        return Condition("running", f"works on {queue.active}{then.get(queue.wanted, '')}")
    if queue.heartbeat and queue.heartbeat.phase == "idle":
        doing = waits_for_cell(queue) or "waits for new lines"
        return Condition("idle", f"{doing}{then.get(queue.wanted, '')}")
    return Condition("running", f"between two cells{then.get(queue.wanted, '')}")


def _still_s(queue: QueueView, now: str) -> float:
    """Seconds without a step; 0 where no step was ever reported, or none is being made."""
    is_running = queue.heartbeat is None or queue.heartbeat.phase == "running"
    if queue.moved_at is None or not is_running:
        return 0.0
    return _age_s(queue, queue.moved_at, now)


def _unseen_s(queue: QueueView, now: str) -> float:
    """Seconds since the attempt was last known to run; 0 where none should."""
    record = queue.state.cells.get(queue.active or "") if queue.state else None
    if record is None or not isinstance(record.state, state.Running):
        return 0.0
    # The agent names the cell in its heartbeat for as long as it sees a process of it.
    beat = queue.heartbeat
    signs = [record.state.at, *([beat.at] if beat and beat.cell == queue.active else [])]
    return _age_s(queue, max(signs), now)


def _allowed_s(steps_at: Sequence[str]) -> float:
    gaps_s = [timestamp.seconds_between(a, b) for a, b in itertools.pairwise(steps_at)]
    return max(FROZEN_AFTER_S, FROZEN_AFTER_GAPS * statistics.median(gaps_s or [0.0]))
