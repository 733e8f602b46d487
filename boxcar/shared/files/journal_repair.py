"""What a damaged journal was, proven by its own checks: from a copy of it.

Proven is what reads without damage, begins as the good part of the damaged file does, has where the
journal is known to have ended, and loses no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import journal
from boxcar.shared.files.journal import JournalEnd, Reading
from boxcar.shared.files.journal_chain import LINE_FEED, NO_EVENT, Chain
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class GoodPart:
    """How far a journal can be read: its end there, whether a check proves it, and its bytes."""

    end: JournalEnd
    is_proven: bool
    size_bytes: int


def good_part(data: bytes) -> GoodPart:
    chain = Chain()
    size_bytes = 0
    for line in data.split(LINE_FEED)[:-1]:
        try:
            chain.take(line)
        except (*NO_EVENT, NewerError):
            break
        size_bytes += len(line) + 1
    return GoodPart(JournalEnd(chain.seq, chain.check), chain.is_checked, size_bytes)


def problem(data: bytes, ends: Iterable[JournalEnd], where: str) -> str | None:
    """Why the journal is not as it was written; `ends` are where it is known to have ended once."""
    try:
        reading = journal.parse_journal(data, where)
    except DamagedError as error:
        return error.messages[0].text
    return next((lack for end in ends if (lack := journal.lack(reading, end))), None)


def is_copy(copy: bytes, data: bytes) -> bool:
    """Whether `copy` is of this very journal: a run that was launched anew began its journal anew.

    It may have more, or other bytes after the first line.
    """
    first, line_feed, _ = data.partition(LINE_FEED)
    return copy.startswith(first + line_feed)


def ends_of_copies(copies: Iterable[bytes], data: bytes) -> Iterator[JournalEnd]:
    """Where the good ones of these end that are copies of this very journal."""
    for copy in copies:
        if is_copy(copy, data) and (reading := _read(copy)):
            yield reading.end


def from_copy(data: bytes, copy: bytes, ends: Iterable[JournalEnd]) -> bytes | None:
    """The journal from a copy, and from the lines of the damaged file that are newer than that."""
    lines = data.split(LINE_FEED)
    known = copy.count(LINE_FEED)
    newer = LINE_FEED.join(lines[known:]) if len(lines) > known else b""
    for candidate in (copy + newer, copy) if copy.endswith(LINE_FEED) else (copy,):
        if _is_proven(data, candidate, [*ends]):
            return candidate
    return None


def _is_proven(data: bytes, candidate: bytes, ends: list[JournalEnd]) -> bool:
    reading, good = _read(candidate), good_part(data)
    known = [*ends, good.end] if good.is_proven else ends
    if reading is None or not all(reading.has(end) for end in known):
        return False
    return len(reading.events) >= data.count(LINE_FEED)


def _read(data: bytes) -> Reading | None:
    try:
        return journal.parse_journal(data, "a copy")
    except DamagedError:
        return None
