"""What of a queue is to be run now: its lines, but for those above the first one, those of cells
that another queue has, those that wait for a release with their config or for another cell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import Command, DamagedError
from boxcar.shared.files.queue_line import Queue
from boxcar.shared.sentence import _
from boxcar.shared.state import Synced, Verified
from onbox.queue import next_cell, resaid
from onbox.queue.acceptance import Acceptance
from onbox.queue.claims import Claims
from onbox.queue.next_cell import Above, Begin, Turns
from onbox.queue.predecessors import Predecessors
from onbox.queue.queue_file import QueueFile
from onbox.queue.release_lines import ReleaseLines
from onbox.queue.reporter import Reporter


class Lines:
    """The lines of one queue's file."""

    def __init__(
        self,
        file: QueueFile,
        begin: Begin,
        reporter: Reporter,
        own: ReleaseLines,
        other_release: Callable[[CellLine], str | None],
        *,
        claims: Claims,
        acceptance: Acceptance,
    ) -> None:
        """`own` is of the agent's own release; `other_release` says which other one a line runs
        from that is not for that, None while there is none.
        """
        self._acceptance = acceptance
        self._file = file
        self._begin = begin
        self._reporter = reporter
        self._own, self._other_release = own, other_release
        self._claims = claims
        self._above: Above | None = None  # once the queue was read
        self._predecessors = Predecessors(own.place, reporter)
        self._turns = Turns()
        self._not_before: dict[str, float] = {}  # of cells that were put off
        self._unfit: dict[str, str] = {}  # for this box, and why

    @property
    def queue(self) -> Queue:
        return self._file.queue

    def read(self) -> bool:
        """Read the queue file; False while somebody seems to be saving it. Raises DamagedError."""
        before = self.queue
        is_whole = self._file.look()
        if is_whole:
            self._warn_of_edits(before)
        return is_whole

    def count_last_line(self) -> bool:
        """For an agent that has nothing else to run: whether a last line without its line feed
        counts from now on.
        """
        before = self.queue
        is_counted = self._file.count_last_line()
        if is_counted:
            self._warn_of_edits(before)
        return is_counted

    def put_off(self, cell: str, wait_s: float) -> None:
        """It is tried again after that time, and others meanwhile. A later agent tries it at once,
        so nobody else needs to know.
        """
        self._not_before[cell] = time.monotonic() + wait_s

    def leave_to_members(self, cell: str, why: str) -> None:
        """This box cannot run it; another one of the pool may."""
        self._unfit[cell] = why

    def begins(self, cell: str) -> None:
        self._not_before.pop(cell, None)

    def next(self) -> CellLine | None:
        """The first line that is to be run now, or None."""
        return next(self.in_turn(), None)

    def in_turn(self, under_way: Collection[str] = ()) -> Iterator[CellLine]:
        """The lines that are to be run now beside those under way. What was put off comes before
        all others once it is time.
        """
        mine = self._mine()
        elsewhere = self._elsewhere(mine)
        waiting = {line.name for line in self._waiting(mine, elsewhere)}
        not_now = waiting | self._acceptance.doubts.keys()
        has_after = any(line.own.after for line in mine)
        self._turns = self._predecessors.turns(
            line for line in mine if has_after and line.name not in not_now
        )
        later = self._later()
        found = next_cell.cells_in_turn(
            mine,
            self._reporter.record,
            release=self._release,
            elsewhere=elsewhere,
            passed_over={*not_now, *later, *under_way, *self._turns.waiting, *self._turns.blocked},
            first=self._not_before.keys() - later,
        )
        return (line for line in found if not self._claims.pass_over(line.name))

    def _later(self) -> set[str]:
        now = time.monotonic()
        return {cell for cell, at in self._not_before.items() if at > now}

    def open(self) -> list[CellLine]:
        """The lines that are still to be run, in whatever order."""
        return [
            line
            for line in self._mine()
            if next_cell.is_to_run(self._reporter.record(line.name), self._release)
        ]

    @property
    def has_waiting(self) -> bool:
        """Whether a line waits for another cell, which may still come, for its time, or for its
        line feed.
        """
        is_there = {line.name for line in self._mine()} if self._not_before else set()
        return bool(self.is_typed or self._turns.waiting or self._later() & is_there)

    @property
    def is_typed(self) -> bool:
        """Whether the last line has no line feed, and does not count yet."""
        return bool(self.queue.unfinished)

    def waiting(self) -> list[CellLine]:
        """The lines that came before a release with their config."""
        mine = self._mine()
        return self._waiting(mine, self._elsewhere(mine))

    def left_open(self) -> list[str]:
        """Which lines were not attempted, though nothing is left to run, and why; sentences."""
        others = self._claims.not_verified()
        blocked = [
            _("{cell} is blocked by {other}", cell=cell, other=name)
            for cell, name in self._turns.blocked.items()
        ]
        doubts = self._acceptance.doubts.values()
        unfit = [self._unfit[cell] for cell in self.unfit]
        left_open = next_cell.left_open(self.queue, self._skipped(), passed_over=others)
        return [*left_open, *doubts, *blocked, *unfit]

    @property
    def unfit(self) -> list[str]:
        """The cells that this box cannot run, and that no other member has begun."""
        return [cell for cell in self._unfit if self._claims.of(cell) is None]

    @property
    def _release(self) -> str:
        return self._own.place.release.name

    def _skipped(self) -> Above:
        """The cells above the first one to run, as the queue was when it was first read."""
        if self._above is None:
            self._above = next_cell.above(self._begin, self.queue, self._file.commented_out())
        if self._above is None:
            raise DamagedError(
                _(
                    "{path}: it is to begin with {cell}, which has no line any more. Put it back, "
                    "or name another beginning",
                    path=self._file.path,
                    cell=self._begin.cell,
                ),
                Command("launch", ("--start-index", "N")),
            )
        return self._above

    def _mine(self) -> list[CellLine]:
        """What is left and not another queue's."""
        self._skipped()  # as the queue is at the first look, also where it has no line yet
        return [line for line in self.queue.cells if not self._is_through(line)]

    def _is_through(self, line: CellLine) -> bool:
        if line.name in self._skipped().cells or line.name in self._unfit:
            return True
        if line.name in self._claims.of_others or line.name in self._claims.of_members:
            return True
        return isinstance(self._reporter.record(line.name).state, Verified)

    def _elsewhere(self, mine: Iterable[CellLine]) -> dict[str, str | None]:
        """The release of each line that the agent's own cannot run; None while it has to wait."""
        foreign = [line for line in mine if not self._own.has_config(line)]
        return {line.name: self._other_release(line) for line in foreign}

    def _waiting(
        self, mine: Iterable[CellLine], elsewhere: Mapping[str, str | None]
    ) -> list[CellLine]:
        waiting = [
            line
            for line in mine
            if elsewhere.get(line.name, line.name) is None
            and next_cell.is_to_run(self._reporter.record(line.name), self._release)
        ]
        for line in waiting:
            text = _(
                "{cfg} is in no release yet: {cell} waits until a push brings it",
                cfg=line.cfg,
                cell=line.name,
            )
            self._reporter.warn("waits_for_release", text, line.name)
        return waiting

    def _warn_of_edits(self, before: Queue) -> None:
        path, now = self._file.path, self.queue
        if now is before:
            return
        has_grown = now.lines[: len(before.lines)] == before.lines
        if not has_grown:
            for change in next_cell.changes(before, now, self._file.commented_out()):
                text = _(
                    "{path} was edited above its end: {change}. What has run stays as it is",
                    path=path,
                    change=change,
                )
                self._reporter.warn("queue_edited", text)
        self.warn_of_used_names(len(before.cells) if has_grown else 0)
        for bad in now.bad:
            text = _(
                "{path}:{number}: {reason}; the line is skipped",
                path=path,
                number=bad.number,
                reason=bad.reason,
            )
            self._reporter.warn("queue_line", text)

    def warn_of_used_names(self, first: int = 0) -> None:
        """A result stays; who asks for something else under its name is told. `first`: the lines
        above it were looked at before.
        """
        for line in self.queue.cells[first:]:
            if not isinstance(self._reporter.record(line.name).state, (Synced, Verified)):
                continue
            if (started := self._reporter.begun(line.name)) is None:
                continue
            now = self._own.saying(line)
            if said.sayings_differ(now, started.data.get("saying")):
                text = _(
                    "{before}, and has a result; give the line another name, name=...",
                    before=resaid.sentence(line, started),
                )
                self._reporter.warn("said_otherwise", text, line.name)
