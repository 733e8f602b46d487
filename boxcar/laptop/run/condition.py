"""What is the matter with a queue, in one word and a sentence. Pure: decided from a view of it."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.hosts.scheduled import JobEnd
from boxcar.laptop.run.view import (
    ABANDONED,
    DAMAGED,
    DROPPED,
    CellView,
    Condition,
    QueueView,
    RunView,
)
from boxcar.shared import state, timestamp
from boxcar.shared.errors import SEMICOLON
from boxcar.shared.event_words import heard
from boxcar.shared.files import control
from boxcar.shared.files.heartbeat import CHECKS, FETCHES, UNPACKS, Fetching, Seen
from boxcar.shared.process import end_reason
from boxcar.shared.sentence import Sentence, _, chained, mark
from boxcar.shared.state import CellRecord, Session
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signatures.all_rows import BY_ID

# How long a cell and its queue will still take, from what has been seen. Pure.
#
# A running cell is judged by its own epochs, once one is done; a cell that waits by the verified
# ones of its task, and their time for each epoch. What nobody can know stays None.


_ENDED = (state.Succeeded, state.Synced, state.Verified, state.Failed)
_OVER = frozenset((ABANDONED, DAMAGED, DROPPED, *(kind.word for kind in _ENDED)))


def seconds_per_epoch(cells: Iterable[CellView]) -> dict[str, float]:
    """Of each task the median time for an epoch, over its verified cells."""
    seen: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.record and isinstance(cell.record.state, state.Verified) and cell.epochs:
            seen[cell.task].append(cell.seconds / cell.epochs)
    return {task: statistics.median(found) for task, found in seen.items()}


def _left_s(cell: CellView, per_epoch: Mapping[str, float]) -> float | None:
    """Of a cell that is not over."""
    if cell.record is None:
        return None
    done, is_running = cell.progress.get("epoch"), isinstance(cell.record.state, state.Running)
    if cell.epochs and is_running and isinstance(done, (int, float)) and done > 0:
        return cell.seconds / done * max(0.0, cell.epochs - done)
    seen_s = _left_as_seen_s(cell) if is_running else None
    if cell.epochs and cell.task in per_epoch:
        left_s = per_epoch[cell.task] * cell.epochs - cell.seconds
        return left_s if left_s > 0 else seen_s or 0.0
    return seen_s


def _left_as_seen_s(cell: CellView) -> float | None:
    """By what its log seems to say, where nothing better is known."""
    seen = cell.seen or Seen()
    if seen.left_s is not None:
        return seen.left_s
    # Of how many epochs only the queue's line says.
    done, epochs = seen.epoch or 0.0, 0 if seen.epochs else cell.epochs or 0
    return cell.seconds / done * (epochs - done) if 0 < done <= epochs else None


def queues_left_s(view: RunView, left_s: Mapping[str, float | None]) -> dict[str, float | None]:
    """Seconds until each queue's last cell ends, of the `left_s` of each cell; None where one of
    them is unknown. Who runs cells side by side is done with the sum by so much sooner, and not
    before its longest.
    """
    of_queue: dict[str, list[float | None]] = {queue.name: [0.0] for queue in view.queues}
    # Those of a pool share what none has claimed.
    takers = {
        name: [of_queue[one.name] for one in list(filter(may_run, queues)) or queues]
        for name, queues in view.by_queue_or_file.items()
    }
    for cell in view.cells:
        its_s, shares = left_s[cell.name], takers.get(cell.queue, ())
        for share in shares:
            share.append(its_s if its_s is None or not shares[1:] else its_s / len(shares))
    beats = {queue.name: queue.heartbeat for queue in view.queues}
    found: dict[str, float | None] = {}
    for name, each in of_queue.items():
        known = [own_s for own_s in each if own_s is not None]
        beat = beats.get(name)
        beside = max(1, len(beat.at_work)) if beat else 1
        is_known = len(known) == len(each)
        found[name] = max(*known, sum(known) / beside) if is_known else None
    return found


def cells_left_s(view: RunView) -> dict[str, float | None]:
    """Seconds until each cell's script ends, by what its run has seen; 0 for one that has ended,
    None where nobody knows.
    """
    left_s: dict[str, float | None] = {cell.name: 0.0 for cell in view.of_words(_OVER)}
    if to_come := view.of_words(view.by_word.keys() - _OVER):
        per_epoch = seconds_per_epoch(view.cells)
        left_s |= {cell.name: _left_s(cell, per_epoch) for cell in to_come}
    return left_s


STALLED_AFTER_S = 60.0
# Evaluation, a download or a compilation makes no step for minutes, and nothing is wrong.
FROZEN_AFTER_S = 15 * 60.0
FROZEN_AFTER_GAPS = 5
# An agent says every few seconds that its cell runs, and at once that it has ended.
TRAINER_GRACE_S = 30.0


_THEN = {
    control.DRAIN: mark("{sentence}; draining: nothing new starts"),
    control.STOP: mark("{sentence}; stopping"),
}


_STARTS = _("its agent is starting up or shutting down")


def condition_of(queue: QueueView, now: str) -> Condition:
    """What is the matter with the queue. Doubt has its own words; it is never called dead."""
    session = queue.session
    if queue.is_damaged:
        return Condition(
            "damaged", _("its event log is damaged; what happened after the damage is unknown")
        )
    if queue.state is None:
        return Condition("unknown", _("its event log cannot be read right now"))
    # Another box may see its lock on a shared tier: that its box is silent is to be said first.
    is_open = queue.is_alive or (queue.is_alive is None and not (session and session.ended))
    if is_open and queue.silent is not None:
        return _unreachable(queue, now)
    if queue.is_alive and session and not session.ended and _end_since(queue):
        # Another pod runs, whose agent has not said a word.
        return _with_end(Condition("running", _STARTS), queue)
    if queue.is_alive:
        return _with_agent(queue, session, now)
    if is_open:
        return Condition(
            "unknown", _("its lock cannot be checked, so the agent may or may not be running")
        )
    if queue.scheduled:
        word = "held" if queue.scheduled.need else "pending"
        return _with_end(Condition(word, queue.scheduled.sentence), queue)
    return _with_end(_without_agent(queue, session), queue)


def _with_end(found: Condition, queue: QueueView) -> Condition:
    """With how its last agent ended by the scheduler's word, where it could not say so itself."""
    session = queue.session
    if session and session.ended and session.by != end_reason.SIGNAL:
        return found
    newest = _end_since(queue)
    both = [found.sentence, *([newest.sentence] if newest else [])]
    return Condition(found.word, chained(SEMICOLON, both))


def _end_since(queue: QueueView) -> JobEnd | None:
    """How the pod of its last agent ended, or the Job since."""
    session = queue.session
    found = [end for end in queue.ends if session is None or end.at >= session.at]
    return found[-1] if found else None


def may_run(queue: QueueView) -> bool:
    """Whether an agent is at work, or will be by itself; doubt counts as one."""
    words = ("unknown", "unreachable", "pending", "held")
    return bool(queue.is_alive) or queue.condition.word in words


def is_broken_off(queue: QueueView, cell: str) -> bool:
    """Whether of the attempt that its journal calls running nothing runs any more."""
    if cell != queue.active:
        return queue.is_alive is False and cell not in queue.alive_beside
    is_gone = queue.is_alive is False and queue.is_cell_alive is False
    return is_gone or queue.condition.word == "trainer dead"


def ran_s(queue: QueueView, cell: str, attempt: state.Running, now: str) -> float:
    """For how long a running attempt of the queue has been seen to run."""
    is_seen = queue.is_alive or queue.is_cell_alive or cell in queue.alive_beside
    if is_seen and not is_broken_off(queue, cell):
        return _age_s(queue, attempt.at, now)
    return timestamp.seconds_between(attempt.at, _last_seen(queue, attempt))


def waits_for_cell(queue: QueueView) -> str | None:
    """What its agent said last of a cell that waits for another one, while it still waits."""
    if queue.state is None or queue.session is None:
        return None
    said = [
        heard(event.data) or ""
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


def _unreachable(queue: QueueView, now: str) -> Condition:
    """Not a word on dead: a shared tier may even show that the agent is well."""
    age_s, who = heartbeat_age_s(queue, now), {"box": queue.box, "why": queue.silent}
    if age_s is None:
        return Condition("unreachable", _("{box} does not answer ({why})", **who))
    return Condition(
        "unreachable",
        _(
            "{box} does not answer ({why}); its last heartbeat is {seconds} s old",
            **who,
            seconds=f"{age_s:.0f}",
        ),
    )


def _without_agent(queue: QueueView, session: Session | None) -> Condition:
    if session is None:
        return Condition("not started", _("no agent has started it yet"))
    if session.ended is None:
        return Condition("agent dead", _agent_dead(queue, session))
    if session.ended == "queue.done":
        if session.reason:
            return Condition(
                "incomplete", _("some lines were not run: {reason}", reason=session.reason)
            )
        return Condition("done", _("all lines were run"))
    if session.by == end_reason.DRAIN:
        return Condition("drained", _("its agent ended as requested"))
    if session.by == end_reason.BUDGET:
        return Condition("stopped", _("the budget is spent: no new cell began"))
    if session.by == end_reason.SIGNAL:
        return Condition(
            "stopped",
            _("the system ended its agent: the job was cancelled, or the box went down"),
        )
    return Condition("stopped", session.reason or _("no reason given"))


def _agent_dead(queue: QueueView, session: Session) -> Sentence:
    doing = _("between two cells")
    if queue.active:
        doing = _("while {cell} was running", cell=queue.active)
    gone = _(
        "its agent (process {pid} on {box}) is gone without a final event, {doing}",
        pid=session.pid,
        box=session.box,
        doing=doing,
    )
    if queue.is_cell_alive:
        return _("{sentence}; the cell is still running", sentence=gone)
    return gone


def _with_agent(queue: QueueView, session: Session | None, now: str) -> Condition:
    if session is None or session.ended:
        return Condition("running", _STARTS)
    # The heartbeat may still be that of the agent before.
    last_sign = max(session.at, queue.heartbeat.at) if queue.heartbeat else session.at
    silent_s = _age_s(queue, last_sign, now)
    if queue.is_cell_alive is False and _unseen_s(queue, now) > TRAINER_GRACE_S:
        return Condition(
            "trainer dead",
            _("no process of {cell} is left, but its agent did not report it", cell=queue.active),
        )
    if silent_s > STALLED_AFTER_S:
        return Condition(
            "stalled agent",
            _(
                "its agent holds the lock, but has been silent for {seconds} s",
                seconds=f"{silent_s:.0f}",
            ),
        )
    still_s, allowed_s = _still_s(queue, now), _allowed_s(queue.steps_at)
    if still_s > allowed_s:
        within = {"seconds": f"{still_s:.0f}", "allowed": f"{allowed_s:.0f}"}
        return Condition(
            "step frozen",
            _(
                "{cell}: no step for {seconds} s (expected one within {allowed} s)",
                cell=queue.active,
                **within,
            ),
        )
    now_at = _at_work(queue)
    then = _THEN.get(queue.wanted)
    return Condition(now_at.word, Sentence(then, sentence=now_at.sentence)) if then else now_at


def sets_up(queue: QueueView) -> Sentence | None:
    """What is said of a queue whose box is not ready for a cell yet."""
    if queue.heartbeat and (now := queue.heartbeat.fetching):
        return _fetches(queue.box, now)
    if queue.heartbeat and queue.heartbeat.phase == "setup":
        return _("sets up {box} before its first cell", box=queue.box)
    return None


_DOING = {
    FETCHES: mark("{box} fetches data {name}: {done}"),
    CHECKS: mark("{box} checks data {name}: {done}"),
    UNPACKS: mark("{box} unpacks data {name}: {done}"),
}


def _fetches(box: str, now: Fetching) -> Sentence:
    done = units.size(now.done_bytes)
    if now.total_bytes:
        of = units.size(now.total_bytes)
        done = _("{done} of {total}", done=done, total=of)
    if now.bytes_per_s > 0:
        done = _("{done}, {rate}/s", done=done, rate=units.size(round(now.bytes_per_s)))
    text = _DOING.get(now.doing, _DOING[FETCHES])
    return Sentence(text, box=box, name=now.name, done=done)


def _at_work(queue: QueueView) -> Condition:
    if found := sets_up(queue):
        return Condition("running", found)
    record = queue.state.cells.get(queue.active or "") if queue.state else None
    if record and isinstance(record.state, state.Waiting) and record.state.awaits_room:
        return Condition(
            "no room",
            _(
                "{cell} waits for disk space on {box}: free some, and it continues by itself",
                cell=queue.active,
                box=queue.box,
            ),
        )
    if queue.active and (waits := next_try(queue.active, record, queue.clock_ahead_s)):
        return Condition("idle", waits)
    if queue.active:
        return Condition("running", _("works on {cell}", cell=queue.active))
    if queue.heartbeat and queue.heartbeat.phase == "idle":
        waits_for = waits_for_cell(queue) or _("waiting for new lines")
        return Condition("idle", waits_for)
    return Condition("running", _("between two cells"))


def next_try(cell: str, record: CellRecord | None, clock_ahead_s: float = 0.0) -> Sentence | None:
    """When a cell that waits is tried again, by this machine's clock; None for one that waits for
    no time. `clock_ahead_s`: of its box, see QueueView.
    """
    now = record.state if record else None
    if record is None or not isinstance(now, state.Waiting) or now.until is None:
        return None
    ends_at = timestamp.parse_utc(timestamp.after(now.until, -clock_ahead_s)).astimezone()
    is_away = now.course == Course.WAIT_NETWORK.value
    return _(
        mark("{cell} waits for the network until {at}, {tries}")
        if is_away
        else mark("{cell} is retried at {at}, {tries}"),
        cell=cell,
        at=ends_at.strftime("%H:%M"),
        tries=_tries(now.failure, record.retries.get(now.failure, 0) + 1),
    )


def _tries(failure: str, number: int) -> Sentence:
    """A person's own signature has no row here that says how often."""
    row = BY_ID.get(failure)
    if row is None or number > len(row.waits_s) + 1:
        return _("try {n}", n=number)
    return _("try {n} of {all}", n=number, all=len(row.waits_s) + 1)


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
    return _age_s(queue, _last_seen(queue, record.state), now)


def _last_seen(queue: QueueView, attempt: state.Running) -> str:
    """By the box's clock: the agent names the cell in its heartbeat for as long as it sees a
    process of it.
    """
    beat = queue.heartbeat
    return max(attempt.at, beat.at) if beat and beat.of_cell(queue.active or "") else attempt.at


def _allowed_s(steps_at: Sequence[str]) -> float:
    gaps_s = [timestamp.seconds_between(a, b) for a, b in itertools.pairwise(steps_at)]
    return max(FROZEN_AFTER_S, FROZEN_AFTER_GAPS * statistics.median(gaps_s or [0.0]))
