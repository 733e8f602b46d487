"""The journal of one queue: every event, append-only; the one truth about what happened.

One JSON object a line. Its agent writes it, holding the queue's lock; everybody reads it. It is
the webhooks' outbox too: `data` is sent as it stands, with the event's id on every try.

Each line has a check over its bytes and the check before it (`journal_chain`). A last line without
its line feed is whole where its check is right, else it was torn by a crash: it never happened, and
this is said. A bad line before that is damage: reading stops with its number, and the file is kept
as it is.
"""

from __future__ import annotations

import collections
import contextlib
import io
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, DamagedError, NewerError, TemporaryError
from boxcar.shared.files import codec, journal_chain
from boxcar.shared.files.journal_chain import LINE_FEED, NO_EVENT, Chain, Event, is_readable
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What webhooks carry; the other types are the journal's own.
PUBLIC_TYPES = frozenset(
    {
        "agent.started",
        "agent.stopped",
        "box.audit",
        "box.idle",
        "box.warning",
        "cell.failed",
        "cell.progress",
        "cell.retried",
        "cell.started",
        "cell.synced",
        "cell.verified",
        "queue.done",
        "queue.started",
        "queue.stopped",
    }
)


@dataclass(frozen=True)
class JournalEnd:
    """The number of a journal's last event, and the check over it and all before it."""

    seq: int
    check: str


@dataclass(frozen=True)
class Reading:
    """The events of a file with the check of each, and the bytes of a torn last line (empty where
    there was none). `after` is what stands where the last event's line feed should be.
    """

    events: Sequence[Event]
    torn: bytes = b""
    checks: Sequence[str] = ()
    after: bytes = LINE_FEED

    @property
    def end(self) -> JournalEnd:
        return JournalEnd(
            len(self.events), self.checks[-1] if self.checks else journal_chain.OF_NOTHING
        )

    def has(self, end: JournalEnd) -> bool:
        """Whether the journal ended so once, and was only appended to since."""
        if end.seq == 0:
            return True
        return end.seq <= len(self.checks) and self.checks[end.seq - 1] == end.check


def read_journal(path: Path) -> Reading:
    """Every event of a journal; a missing file has none. Raises DamagedError for a bad line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Reading(())
    return parse_journal(data, str(path))


def parse_journal(data: bytes, where: str, after: JournalEnd | None = None) -> Reading:
    """`after`: the end of what stands before the data, and was read before."""
    walk = Walk(where, Chain.after(after.seq, after.check) if after else None)
    events: list[Event] = []
    checks: list[str] = []
    for event in walk.events(io.BytesIO(data)):
        events.append(event)
        checks.append(walk.chain.check)
    return Reading(tuple(events), walk.torn, tuple(checks), walk.after)


class Walk:
    """One walk over a journal's lines, which keeps none of them. When it has ended, `torn` is what
    is left of a torn last line, and `after` what stands in the place of the last line feed.
    """

    def __init__(self, where: str, chain: Chain | None = None) -> None:
        self.chain = chain or Chain()
        self.torn, self.after = b"", LINE_FEED
        self._where = where

    @property
    def end(self) -> JournalEnd:
        return JournalEnd(
            self.chain.seq, self.chain.check if self.chain.seq else journal_chain.OF_NOTHING
        )

    def events(self, lines: BinaryIO) -> Iterator[Event]:
        """Raises DamagedError for a bad line."""
        for line in lines:
            if not line.endswith(LINE_FEED):
                self.torn = line
                break
            try:
                event = self.chain.take(line.removesuffix(LINE_FEED))
            except (*NO_EVENT, NewerError) as error:
                last = collections.deque((one for one in lines if one.endswith(LINE_FEED)), 1)
                newest = last[0] if last else line
                raise _unreadable(
                    _("{path}: line {line}", path=self._where, line=self.chain.seq + 1),
                    error,
                    newest,
                ) from error
            yield event
        if found := self.chain.take_last(self.torn):
            event, self.after = found
            self.torn = b""
            yield event


def _unreadable(where: str, error: Exception, last_line: bytes) -> DamagedError:
    # A newer Boxcar writes on in its own version.
    if isinstance(error, NewerError) and not is_readable(last_line):
        return NewerError(_("{head}: {text}", head=where, text=error))
    return DamagedError(
        _(
            "{where} is damaged ({error}). The file is kept as it is; lines before it are good",
            where=where,
            error=error,
        ),
        Command("repair"),
    )


class Journal:
    """The writer, under the queue's lock. `append` returns when the event is durable."""

    def __init__(
        self,
        path: Path,
        common: dict[str, Any],
        is_ours: Callable[[], bool] | None = None,
        seen: JournalEnd | None = None,
        *,
        take: Callable[[Event], None] | None = None,
    ) -> None:
        """Opens or creates the journal; a torn last line is put aside, see `torn_file`. `take` gets
        each event that it holds, which is not kept: a long run's are too many.

        `common` (run, queue, box) goes into every event's data. `is_ours` says whether the queue is
        this writer's still, and is asked before each event. `seen` is an end that it had once.
        Raises DamagedError.
        """
        self.path = path
        self._is_ours = is_ours
        self.torn_file: Path | None = None
        self._common = common
        walk = self._walk(seen, take or (lambda event: None))
        if walk.torn:
            self.torn_file = self._put_torn_line_aside(walk.torn, walk.end.seq)
        if walk.after != LINE_FEED:
            _write_line_feed(path, path.stat().st_size - len(walk.after))
        self._end = walk.end
        self._size_bytes = _size_bytes(path)

    @property
    def end(self) -> JournalEnd:
        return self._end

    def _walk(self, seen: JournalEnd | None, take: Callable[[Event], None]) -> Walk:
        walk = Walk(str(self.path))
        was_so = seen is None or seen.seq == 0
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as lines:
            for event in walk.events(lines):
                take(event)
                was_so = was_so or walk.end == seen
        if seen and not was_so:
            raise DamagedError(
                _("{head}: {text}", head=self.path, text=_lack(walk.end.seq, seen)),
                Command("repair"),
            )
        return walk

    def append(self, type: str, **data: Any) -> Event:
        """Write an event; it is on the disk when this returns. Raises OSError, and TemporaryError
        where another agent writes this journal by now; then this event never was.
        """
        event = Event(
            seq=self._end.seq + 1,
            id=f"evt_{uuid.uuid4().hex}",
            at=timestamp.utc_now(),
            type=type,
            data=codec.finite(self._common | {k: v for k, v in data.items() if v is not None}),
        )
        line = event.to_line(self._end.check)
        if self._is_ours is not None:
            self._refuse_second_writer(self._is_ours)
        atomic.append(self.path, line)
        self._end = JournalEnd(event.seq, Event.check_of(line))
        self._size_bytes += len(line)
        return event

    def _refuse_second_writer(self, is_ours: Callable[[], bool]) -> None:
        """Who came while the lock was lost may have gone again, and left events."""
        if self._end.seq and not self.path.exists():
            raise TemporaryError(
                _(
                    "{path}: this queue's journal is not there any more, and nothing was written. "
                    "The durable tier seems to be unmounted: mount it again, then",
                    path=self.path,
                ),
                Command("launch"),
            )
        if not is_ours() or _size_bytes(self.path) != self._size_bytes:
            raise TemporaryError(
                _(
                    "{path}: another agent has taken this queue over while the durable tier was "
                    "unreachable from here; nothing was written. See where it runs",
                    path=self.path,
                ),
                Command("status"),
            )

    def _put_torn_line_aside(self, torn: bytes, after_seq: int) -> Path:
        aside = self.path.with_name(f"{self.path.name}.torn-{after_seq + 1}")
        atomic.write_whole(aside, torn)
        size_bytes = self.path.stat().st_size - len(torn)
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size_bytes)
            os.fsync(fd)
        finally:
            os.close(fd)
        return aside


def lack(reading: Reading, seen: JournalEnd) -> str | None:
    """What is wrong with a journal that once ended as `seen`; None where it only grew since."""
    return None if reading.has(seen) else _lack(reading.end.seq, seen)


def _lack(last_seq: int, seen: JournalEnd) -> str:
    if missing := max(0, seen.seq - last_seq):
        if missing == 1:
            return _("it ends after event {seq}: its last event is missing", seq=last_seq)
        return _(
            "it ends after event {seq}: its last {n} events are missing", seq=last_seq, n=missing
        )
    return _("up to event {seq} it is not what it was", seq=seen.seq)


def _write_line_feed(path: Path, offset: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, LINE_FEED, offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def _size_bytes(path: Path) -> int:
    """Opened for it: what NFS remembers of a size may be old until then."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        return os.fstat(fd).st_size
    finally:
        os.close(fd)
