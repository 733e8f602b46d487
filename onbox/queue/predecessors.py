"""How the cells stand that others come after: here, or in another queue of the run.

What another queue does is read from its journal; whether an agent is at work there tells its lock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.shared import names, state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, DamagedError
from boxcar.shared.files import attempt, journal, queue_line
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.state import (
    Failed,
    Preempted,
    Running,
    Session,
    State,
    Succeeded,
    Synced,
    Waiting,
)
from onbox.machine.place import Place
from onbox.queue import next_cell
from onbox.queue.next_cell import Standing, Turns
from onbox.queue.reporter import Reporter
from onbox.result import published
from onbox.slurm import ownership

# One launch starts the agents of all queues, not in one moment: for that long what another queue's
# agent of before has given up may be about to be tried again.
TOGETHER_S = 30.0
_BEGUN = (Running, Waiting, Preempted, Succeeded, Synced)


class Predecessors:
    """Those of one queue's lines."""

    def __init__(self, place: Place, reporter: Reporter) -> None:
        self._place = place
        self._tier = place.durable
        self._reporter = reporter
        self._began_at = time.monotonic()
        self._sessions: dict[str, Session | None] = {}  # of other queues, as they were first seen

    @property
    def _file(self) -> str:
        return names.file_of(self._place.queue)

    def turns(self, lines: Iterable[CellLine]) -> Turns:
        """`lines` are those that this agent can run as things are now."""
        own = {line.name: line for line in lines}
        if not any(line.own.after for line in own.values()):
            return Turns()
        records = {name: self._reporter.record(name) for name in own}
        release = self._place.release.name
        to_run = [line for line in own.values() if next_cell.is_to_run(records[line.name], release)]
        after = {line.name: line.own.after for line in to_run if line.own.after}
        is_to_come = {line.name for line in to_run} | {
            name for name in own if isinstance(records[name].state, (Succeeded, Synced))
        }
        named = dict.fromkeys(name for names in after.values() for name in names)
        standings = {name: self._standing(name, is_to_come) for name in named}
        has_others = any(
            standing is Standing.TO_COME and name not in is_to_come
            for name, standing in standings.items()
        )
        found = next_cell.turns(after, standings, self._waits_elsewhere() if has_others else {})
        self._warn(found)
        return found

    def _waits_elsewhere(self) -> dict[str, tuple[str, ...]]:
        """The lines of other queues that name cells to come after, and have not begun."""
        found: dict[str, tuple[str, ...]] = {}
        for path in sorted(self._tier.queues.glob("*.txt")):
            if path.stem != self._file:
                with contextlib.suppress(OSError):
                    cells = _lines_of(path)
                    found |= self._not_begun(path.stem, [one for one in cells if one.own.after])
        return found

    def _not_begun(self, queue: str, lines: Sequence[CellLine]) -> dict[str, tuple[str, ...]]:
        there = self._state_of(queue) if lines else None
        if there is None:  # in doubt nobody is called stuck
            return {}
        return {
            line.name: line.own.after
            for line in lines
            if not isinstance(there.cell(line.name).state, _BEGUN)
            and not published.is_verified(self._tier, line.name)
        }

    def _standing(self, cell: str, is_to_come: set[str]) -> Standing:
        if published.is_verified(self._tier, cell):
            return self._with_files(cell)
        if cell in is_to_come:
            return Standing.TO_COME
        queue = self._queue_of(cell)
        if queue in (None, self._place.queue, self._file):
            return Standing.LOST
        there = self._state_of(queue)
        is_lost = there is None or (_is_over(there, cell) and not self._may_come(queue, there))
        return Standing.LOST if is_lost else Standing.TO_COME

    def _with_files(self, cell: str) -> Standing:
        """A result that was lent may be on the laptop alone, until a push or a launch sends it."""
        try:
            if published.has_files(self._tier, cell):
                return Standing.VERIFIED
            text = _(
                "only the laptop has the files of {cell}, and other cells come after it: push",
                cell=cell,
            )
            self._reporter.warn("files_elsewhere", text, cell)
        except DamagedError:
            pass  # whoever looks at the result says what is wrong with it
        return Standing.LOST

    def _may_come(self, queue: str, there: State) -> bool:
        """Whether an agent of the same launch as this one may still be on its way there."""
        session = there.session and replace(there.session, ended=None, reason=None, by=None)
        is_as_before = self._sessions.setdefault(queue, session) == session
        return is_as_before and time.monotonic() - self._began_at < TOGETHER_S

    def _queue_of(self, cell: str) -> str | None:
        """Whose it is by its claim, else whose file has its line; None where nobody can tell."""
        try:
            if claim := attempt.read_claim(self._tier.claim(cell)):
                return claim.queue
            for path in sorted(self._tier.queues.glob("*.txt")):
                if any(line.name == cell for line in _lines_of(path)):
                    return path.stem
        except (BoxcarError, OSError):
            return None
        return None

    def _state_of(self, queue: str) -> State | None:
        """As its journal says; None for one that cannot be read."""
        try:
            return state.replay(journal.read_journal(self._tier.journal(queue)).events)
        except FileNotFoundError:
            return State()
        except (BoxcarError, OSError):
            return None

    def _warn(self, found: Turns) -> None:
        for cell, way in found.circles.items():
            text = _(
                "{cell} cannot begin: after= leads in a circle: {way}; change one of these lines",
                cell=cell,
                way=" after ".join(way),
            )
            self._reporter.warn("after_circle", text, cell)
        for cell, name in found.waiting.items():
            self._reporter.warn("waits_for_cell", self._waits(cell, name), cell)

    def _waits(self, cell: str, name: str) -> Sentence:
        queue = self._queue_of(name)
        about = {"cell": cell, "other": name, "queue": queue}
        if queue in (None, self._place.queue, self._file):
            return _("{cell} waits for {other}", **about)
        # Of another node's agent a lock may know nothing.
        if ownership.is_ours_to_take() or lock.is_held(self._tier.lock(queue)):
            return _("{cell} waits for {other} of {queue}", **about)
        return _(
            "{cell} waits for {other} of {queue}, where no agent is at work: launch it", **about
        )


def _is_over(there: State, cell: str) -> bool:
    """Whether its own queue will not run it any more, until somebody launches it again."""
    if there.session is None:
        return False
    record = there.cell(cell).state
    has_failed = isinstance(record, Failed) and not record.is_from_before
    return has_failed or there.session.ended is not None


def _lines_of(path: Path) -> list[CellLine]:
    """Also a last one without its line feed: it comes once nothing else is to run there."""
    return queue_line.parse_queue(queue_line.with_last_line(path.read_bytes())).cells
