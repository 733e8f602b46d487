"""The lines of a journal, each of which checks itself and all that is before it.

A line of version 2 ends in a check over its bytes and the check of the line before. Lines of
version 1 have none: the first line of version 2 after them covers all of their bytes, and no line
of version 1 is taken after it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from functools import cached_property
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.errors import NewerError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# The check of a journal's line or of a document: eight bytes of BLAKE2b, its last field.
#
# It is over the bytes before the field, and over the check of what is before them. It finds what a
# disk or a cable changed, and is no signature: who edits a file on purpose can make a new one.


FIELD = "check"
_SIZE_BYTES = 8
_DIGITS = 2 * _SIZE_BYTES


class Running:
    """The check over bytes that come one piece after another."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_SIZE_BYTES)

    def add(self, data: bytes) -> str:
        """The check over all that was added until now."""
        self._hash.update(data)
        return self._hash.hexdigest()


def check_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_SIZE_BYTES).hexdigest()


# What is before the first line of a journal, and before every document.
OF_NOTHING = check_of(b"")


@dataclass(frozen=True)
class Seal:
    """How the field is spelled: `head` stands before its digits, `tail` after them."""

    head: bytes
    tail: bytes

    def put(self, body: bytes, before: str = OF_NOTHING) -> bytes:
        """`body` with its check."""
        return body + self._spelled(before.encode() + body)

    def read(self, data: bytes) -> str:
        """The check that `data` has, right or wrong."""
        end = len(data) - len(self.tail)
        return data[end - _DIGITS : end].decode(errors="replace")

    def fits(self, data: bytes, before: str = OF_NOTHING) -> bool:
        """Whether the check is that of the bytes before it."""
        # Without a call of our own: a journal has half a million lines.
        body, end = data[: -self._size_bytes], data[-self._size_bytes :]
        found = hashlib.blake2b(before.encode() + body, digest_size=_SIZE_BYTES).hexdigest()
        return end == b"%b%b%b" % (self.head, found.encode(), self.tail)

    def _spelled(self, data: bytes) -> bytes:
        return b"%b%b%b" % (self.head, check_of(data).encode(), self.tail)

    @cached_property
    def _size_bytes(self) -> int:
        return len(self.head) + _DIGITS + len(self.tail)


VERSION = 2
LINE_FEED = b"\n"
# What reading a line raises where it is no event.
NO_EVENT = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_SEAL = Seal(b',"check":"', b'"}')
_KINDS = {"seq": int, "id": str, "at": str, "type": str, "data": dict}
_TYPES = [*_KINDS.values()]
_JSON = json.JSONDecoder()
# Found once: a long run has half a million lines.
_SCAN, _FIELDS = _JSON.scan_once, tuple(_KINDS)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Event:
    """`seq` counts from 1 without a gap; `data` always holds run, queue and box, mostly cell."""

    seq: int
    id: str
    at: str
    type: str
    data: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def cell(self) -> str | None:
        return self.data.get("cell")

    def to_line(self, before: str = OF_NOTHING) -> bytes:
        """Its line, where `before` is the check of all that is before it."""
        head = {"v": VERSION, "seq": self.seq, "id": self.id, "at": self.at, "type": self.type}
        record = head | {"data": self.data} | self.extra
        spelled = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        # Half a surrogate pair, from a log that is no UTF-8, is written as JSON's escape of it.
        body = spelled.encode(errors="backslashreplace")
        return _SEAL.put(body.removesuffix(b"}"), before) + LINE_FEED

    @staticmethod
    def check_of(line: bytes) -> str:
        """The check that a line of ours has."""
        return _SEAL.read(line.removesuffix(LINE_FEED))


class Chain:
    """Reads a journal's lines in their order. `check` is over all that was taken."""

    def __init__(self) -> None:
        self.seq = 0
        self.check = OF_NOTHING
        self._of_v1: Running | None = Running()

    @classmethod
    def after(cls, seq: int, check: str) -> Chain:
        """As if all lines before had been taken, of which the last has this check."""
        chain = cls()
        chain.seq, chain.check, chain._of_v1 = seq, check, None
        return chain

    @property
    def is_checked(self) -> bool:
        """Whether the last line that was taken has a check, which then covers all before it."""
        return self._of_v1 is None

    def take(self, line: bytes) -> Event:
        """The event of the next line, without its line feed.

        Raises one of NO_EVENT for what is none, and NewerError; nothing was taken then.
        """
        record = _record(line)
        version = record.pop("v")
        if version != VERSION or type(version) is not int:
            self._refuse_version(version)
        else:
            own = record.pop(FIELD)
            if not _SEAL.fits(line, self.check):
                raise ValueError(_("its check is not that of its bytes and of all before it"))
        event = _event(record)
        if event.seq != self.seq + 1:
            raise ValueError(
                _("event {seq} is in the place of event {n}", seq=event.seq, n=self.seq + 1)
            )
        if version == VERSION:
            self.seq, self.check, self._of_v1 = event.seq, own, None
        else:
            self._go_on(line, version)
        return event

    def take_last(self, rest: bytes) -> tuple[Event, bytes] | None:
        """The event of a last line that has no line feed, and what stands in its place.

        None where it is torn, or of version 1: without a check nothing proves that it is whole.
        """
        for line in (rest, rest[:-1]):
            after = rest[len(line) :]
            if _SEAL.fits(line, self.check) and (not after or _is_flipped_line_feed(after[0])):
                try:
                    return self.take(line), after
                except (*NO_EVENT, NewerError):
                    return None
        return None

    def skip(self, line: bytes) -> None:
        """Go on after a line, without its line feed, that was taken before."""
        self._go_on(line, 1 if line.startswith(b'{"v":1,') else VERSION)

    def _refuse_version(self, version: object) -> None:
        if type(version) is not int or not version >= 1:
            raise ValueError(
                _("version {version!r} is not {version_2}", version=version, version_2=VERSION)
            )
        if version > VERSION:
            raise NewerError(
                _(
                    "version {version} was written by a newer Boxcar: update this one, which "
                    "reads up to version {version_2}",
                    version=version,
                    version_2=VERSION,
                )
            )
        if version < VERSION and self._of_v1 is None:
            raise ValueError(
                _("version {version} after version {version_2}", version=version, version_2=VERSION)
            )

    def _go_on(self, line: bytes, version: int) -> None:
        self.seq += 1
        if version == VERSION:
            self._of_v1 = None
            self.check = _SEAL.read(line)
        elif self._of_v1:
            self.check = self._of_v1.add(line + LINE_FEED)


def is_readable(line: bytes) -> bool:
    """Whether a line is of a version that is read here, by its first bytes."""
    return line.startswith(tuple(b'{"v":%d,' % version for version in range(1, VERSION + 1)))


def _is_flipped_line_feed(byte: int) -> bool:
    """Whether it is a line feed with one bit that is not as it was."""
    return (byte ^ LINE_FEED[0]).bit_count() == 1


def _record(line: bytes) -> dict[str, Any]:
    """Raises ValueError where it is not one JSON value."""
    # As UTF-8: from bytes the library would take UTF-16 too.
    text = line.decode()
    try:
        record, end = _SCAN(text, 0)
    except StopIteration:
        end = -1
    # Spaces around it, which we do not write, are the library's to judge.
    found: dict[str, Any] = record if end == len(text) else _JSON.decode(text)
    return found


def _event(record: dict[str, Any]) -> Event:
    known = [*map(record.pop, _FIELDS)]
    if [*map(type, known)] != _TYPES:
        name, found = next(
            (name, value)
            for (name, kind), value in zip(_KINDS.items(), known, strict=True)
            if type(value) is not kind
        )
        raise TypeError(f"{name} is {found!r}")
    seq, id, at, type_, data = known
    timestamp.parse_utc(at)
    return Event(seq, id, at, type_, data, record)
