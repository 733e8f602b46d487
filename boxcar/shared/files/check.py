"""The check of a journal's line or of a document: eight bytes of BLAKE2b, its last field.

It is over the bytes before the field, and over the check of what is before them. It finds what a
disk or a cable changed, and is no signature: who edits a file on purpose can make a new one.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

from boxcar.shared.record import dataclass

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
