"""State is never stored, only derived: `replay` turns a journal's events into it.

The agent uses it after a restart; status, watch, verify, down and every report use it on the
laptop. Pure: no clock, no disk.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar

from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError
from boxcar.shared.event_words import SENTENCES, hear_in, heard
from boxcar.shared.files import codec
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.process import end_reason
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _
from boxcar.shared.triage.evidence import course_of


@dataclass(frozen=True)
class Queued:
    word: ClassVar[str] = "queued"


@dataclass(frozen=True)
class Claimed:
    word: ClassVar[str] = "claimed"
    at: str


@dataclass(frozen=True)
class Running:
    word: ClassVar[str] = "running"
    attempt: int
    at: str


@dataclass(frozen=True)
class Waiting:
    """Between two attempts: the one that failed, and why it is tried again. `until`: when, where
    the agent that said so is the last that was started; a later one tries at once.
    """

    word: ClassVar[str] = "retrying"
    attempt: int
    at: str
    failure: str
    awaits_room: bool = False  # on a disk that is full
    course: str | None = field(default=None, metadata=codec.LATER)
    until: str | None = field(default=None, metadata=codec.LATER)


@dataclass(frozen=True)
class Preempted:
    word: ClassVar[str] = "preempted"
    attempt: int
    at: str


@dataclass(frozen=True)
class Failed:
    """Not tried again by the agent that gave it up; by a later one, unless `is_final`.

    `is_from_before`: the agent that gave it up is not the last one that was started. `is_kept`: its
    result lies where it was left, and a later agent judges it anew instead of training it again.
    `course` is the failure's class, None of an agent that did not say it.
    """

    word: ClassVar[str] = "failed"
    attempt: int
    at: str
    failure: str
    reason: str
    release: str
    is_final: bool
    is_from_before: bool = False
    is_kept: bool = False
    course: str | None = field(default=None, metadata=codec.LATER)


@dataclass(frozen=True)
class Succeeded:
    """The artifacts are there, on scratch only."""

    word: ClassVar[str] = "succeeded"
    attempt: int
    at: str


@dataclass(frozen=True)
class Synced:
    word: ClassVar[str] = "synced"
    attempt: int
    at: str
    manifest_sha256: str


@dataclass(frozen=True)
class Verified:
    """`bytes_only`: files of its artifacts that nobody looked into; `trusted`: those loaded
    with the code that wrote them. `by`: who proved it, where that was not its box.
    """

    word: ClassVar[str] = "verified"
    attempt: int
    at: str
    manifest_sha256: str
    bytes_only: tuple[str, ...] = ()
    by: str | None = field(default=None, metadata=codec.LATER)
    trusted: tuple[str, ...] = field(default=(), metadata=codec.LATER)


# One for all of a long run's cells: nothing is ever written into a record.
_NONE: dict[str, Any] = {}

CellState = (
    Queued | Claimed | Running | Waiting | Preempted | Failed | Succeeded | Synced | Verified
)


@dataclass(frozen=True)
class CellRecord:
    """One cell's state and what led to it. `seconds` adds up the attempts that have ended."""

    state: CellState = field(default_factory=Queued)
    attempts: int = 0
    seconds: float = 0.0
    # By failure, in this agent's time.
    retries: dict[str, int] = field(default_factory=lambda: _NONE)
    progress: dict[str, Any] = field(default_factory=lambda: _NONE)
    best: dict[str, Any] = field(default_factory=lambda: _NONE)
    # Of the result that was verified last.
    metrics: dict[str, Any] = field(default_factory=lambda: _NONE)
    times_verified: int = 0
    moved_from: str | None = None  # the queue that had claimed it before
    doubt: str = ""  # what marks the result


@dataclass(frozen=True)
class Session:
    """The agent that runs or ran last. `ended` is the type of its last word, or None; `by`: whose
    doing that was, see `end_reason`; `unfit`: the cells that its box could not run.
    """

    at: str
    pid: int
    release: str
    box: str
    start_index: int
    ended: str | None = None
    reason: str | None = None
    by: str | None = None
    start_cell: str | None = None
    unfit: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """What one queue's journal amounts to; of all queues together, see `merge`."""

    cells: dict[str, CellRecord] = field(default_factory=dict)
    session: Session | None = None
    warnings: tuple[Event, ...] = ()
    last_seq: int = 0

    def cell(self, name: str) -> CellRecord:
        return self.cells.get(name, NOTHING_YET)


NOTHING_YET = CellRecord()
WARNINGS_KEPT = 20


class Replay:
    """Follows a journal event by event; types that it does not know change nothing."""

    def __init__(self, before: State | None = None) -> None:
        """`before`: what it amounts to as far as it was followed already."""
        known = before or State()
        self._cells = dict(known.cells)
        self._session = known.session
        self._warnings = deque(known.warnings, WARNINGS_KEPT)
        self._seq = known.last_seq
        self._short: dict[tuple[int, int, int], CellRecord] = {}

    def take(self, event: Event) -> None:
        """Raises DamagedError for an event that lacks what its type must say."""
        try:
            self._take(event)
        except (KeyError, TypeError) as error:
            raise DamagedError(
                _("the journal holds an event that lacks {error}", error=error)
            ) from error

    def _take(self, event: Event) -> None:
        self._seq = event.seq
        cells, session = self._cells, self._session
        rule, name = _CELL_RULES.get(event.type), event.data.get("cell")
        if rule is not None and name is not None:
            name = sys.intern(name)  # one text for all that is kept by it
            cells[name] = rule(cells.get(name, NOTHING_YET), event)
        elif event.type == "box.warning":
            self._warnings.append(event)
        elif event.type == "agent.started":
            self._session = _session(event)
            self._cells = {name: _carried_over(record) for name, record in cells.items()}
        elif session and event.type in ("agent.stopped", "queue.done", "queue.stopped"):
            self._session = _ended(session, event)

    def shorten(self, cell: str) -> None:
        """Of a verified cell know from now on only that it is, and after how many attempts: for the
        agent, which keeps a record of each cell for as long as a queue. Such records are shared.
        """
        record = self._cells.get(cell, NOTHING_YET)
        if isinstance(record.state, Verified):
            known = (record.state.attempt, record.attempts, record.times_verified)
            state = Verified(record.state.attempt, "", "")
            short = CellRecord(state, record.attempts, times_verified=record.times_verified)
            self._cells[sys.intern(cell)] = self._short.setdefault(known, short)

    def record(self, cell: str) -> CellRecord:
        return self._cells.get(cell, NOTHING_YET)

    def state(self) -> State:
        return State(dict(self._cells), self._session, tuple(self._warnings), self._seq)


def replay(events: Iterable[Event], before: State | None = None) -> State:
    """The state after these events. Raises DamagedError as Replay does."""
    following = Replay(before)
    for event in events:
        following.take(event)
    return following.state()


def merge(
    states: Mapping[str, State], owners: Mapping[str, str]
) -> dict[str, tuple[str, CellRecord]]:
    """The cells of several queues, each with the queue whose record counts.

    `states` by queue, `owners` the queues that hold the claims, as far as they are known. A record
    of a result counts wherever it is; else that of the claim's owner, also where it has none yet;
    else not that of a queue from which the cell was moved, and of several the one furthest on.
    """
    told: dict[str, tuple[str, CellRecord]] = {}
    unclear = set(owners)
    for queue, state in states.items():
        for name, record in state.cells.items():
            if told.setdefault(name, (queue, record))[0] != queue:
                unclear.add(name)
    found: dict[str, dict[str, CellRecord]] = {}
    for queue, state in states.items():
        for name in state.cells.keys() & unclear:
            found.setdefault(name, {})[queue] = state.cells[name]
    return told | {name: _merged(name, by, states, owners.get(name)) for name, by in found.items()}


def _merged(
    name: str, found: dict[str, CellRecord], states: Mapping[str, State], owner: str | None
) -> tuple[str, CellRecord]:
    """`found`: what each queue that knows of the cell says of it."""
    left_by = {record.moved_from for record in found.values() if record.moved_from}
    if owner is not None and owner in states:
        found[owner] = states[owner].cell(name)
        left_by = found.keys() - {owner}
    if len(found) == 1:
        return next(iter(found.items()))
    counts = [
        (queue, record)
        for queue, record in found.items()
        if queue not in left_by or isinstance(record.state, (Synced, Verified))
    ]
    return max(counts or list(found.items()), key=lambda pair: _rank(pair[1]))


def _rank(record: CellRecord) -> int:
    order = (Queued, Claimed, Failed, Preempted, Waiting, Running, Succeeded, Synced, Verified)
    return order.index(type(record.state))


def _session(event: Event) -> Session:
    data = event.data
    return Session(
        at=event.at,
        pid=data["pid"],
        release=data["release"],
        box=data["box"],
        start_index=data.get("start_index", 0),
        start_cell=data.get("start_cell"),
    )


def _carried_over(record: CellRecord) -> CellRecord:
    """A new agent counts its retries anew, and may try again what an earlier one gave up."""
    if isinstance(record.state, Failed):
        record = replace(record, state=replace(record.state, is_from_before=True))
    if isinstance(record.state, Waiting) and record.state.until:
        record = replace(record, state=replace(record.state, until=None))
    return replace(record, retries=_NONE) if record.retries else record


def _ended(session: Session, event: Event) -> Session:
    # queue.done says more than the agent.stopped that follows it.
    if session.ended and event.type == "agent.stopped":
        return session
    reason = heard(event.data)
    by = event.data.get("by") or end_reason.of_v1(event.type, reason)
    unfit = tuple(event.data.get("unfit", ()))
    return replace(session, ended=event.type, reason=reason, by=by, unfit=unfit)


def _claimed(record: CellRecord, event: Event) -> CellRecord:
    moved_from = event.data.get("from", record.moved_from)
    return replace(record, state=Claimed(event.at), moved_from=moved_from)


def _started(record: CellRecord, event: Event) -> CellRecord:
    attempt = event.data["attempt"]
    state = Running(attempt, event.at)
    return replace(record, state=state, attempts=attempt, progress=_NONE, best=_NONE, doubt="")


def _progress(record: CellRecord, event: Event) -> CellRecord:
    best = _fields(event, "best") if "best" in event.data else _NONE
    return replace(record, progress=_fields(event, "progress"), best=best)


def _retried(record: CellRecord, event: Event) -> CellRecord:
    failure = event.data["failure"]
    awaits_room = event.data.get("awaits_room") is True
    wait_s = event.data.get("wait_s") or 0.0
    until = timestamp.after(event.at, wait_s) if wait_s else None
    state = Waiting(event.data["attempt"], event.at, failure, awaits_room, _course(event), until)
    ended = replace(record, state=state, seconds=_seconds(record, event))
    if awaits_room:
        return ended
    return replace(ended, retries=record.retries | {failure: record.retries.get(failure, 0) + 1})


def _preempted(record: CellRecord, event: Event) -> CellRecord:
    now = Preempted(event.data["attempt"], event.at)
    return replace(record, state=now, seconds=_seconds(record, event))


def _failed(record: CellRecord, event: Event) -> CellRecord:
    data = event.data
    state = Failed(
        attempt=data["attempt"],
        at=event.at,
        failure=data["failure"],
        reason=heard(data) or data["reason"],
        release=data["release"],
        is_final=data.get("is_final", False),
        is_kept=data.get("is_kept", False),
        course=_course(event),
    )
    return replace(record, state=state, seconds=_seconds(record, event))


def _course(event: Event) -> str | None:
    found = course_of(event.data.get("class"))
    return found.value if found else None


def _succeeded(record: CellRecord, event: Event) -> CellRecord:
    now = Succeeded(event.data["attempt"], event.at)
    return replace(record, state=now, seconds=_seconds(record, event), doubt=_doubt(event))


def _doubt(event: Event) -> str:
    doubt = event.data.get("doubt")
    return hear_in(doubt, event.data.get(SENTENCES)) if isinstance(doubt, str) else ""


def _synced(record: CellRecord, event: Event) -> CellRecord:
    data = event.data
    return replace(record, state=Synced(data["attempt"], event.at, data["manifest_sha256"]))


def _verified(record: CellRecord, event: Event) -> CellRecord:
    data = event.data
    metrics = dict(_fields(event, "metrics"))
    state = Verified(
        data["attempt"],
        event.at,
        data["manifest_sha256"],
        tuple(data.get("bytes_only", ())),
        by=data.get("by"),
        trusted=tuple(data.get("trusted", ())),
    )
    times = record.times_verified + 1
    doubt = _doubt(event) or record.doubt
    return replace(record, state=state, metrics=metrics, times_verified=times, doubt=doubt)


def _fields(event: Event, name: str) -> dict[str, Any]:
    """Raises TypeError where it is there and is no object."""
    found = event.data.get(name, {})
    if not isinstance(found, dict):
        raise TypeError(f"{name} as an object: it is {type(found).__name__}")
    return found


def _seconds(record: CellRecord, event: Event) -> float:
    """With the attempt that ends by this event."""
    seconds: float | None = event.data.get("seconds")
    if seconds is None and isinstance(record.state, Running):
        seconds = timestamp.seconds_between(record.state.at, event.at)
    return record.seconds + (seconds or 0.0)


def _skipped(record: CellRecord, event: Event) -> CellRecord:
    """It is another queue's by now: what this one knows of it says nothing any more."""
    return replace(record, state=Queued())


_CELL_RULES: dict[str, Callable[[CellRecord, Event], CellRecord]] = {
    "cell.claimed": _claimed,
    "cell.started": _started,
    "cell.skipped": _skipped,
    "cell.progress": _progress,
    "cell.retried": _retried,
    "cell.preempted": _preempted,
    "cell.failed": _failed,
    "cell.succeeded": _succeeded,
    "cell.synced": _synced,
    "cell.verified": _verified,
}
