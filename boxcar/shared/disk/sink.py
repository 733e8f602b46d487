"""A large file, written from its front, of which the disk begins before the last byte is there.

So the fsync at its end finds most of them on the disk.
"""

from __future__ import annotations

import os

from boxcar.shared.disk import digest

# Also the most in one call: another thread gets the interpreter between two, and Linux ends a write
# at 2 GiB by itself.
BEGIN_BYTES = 16 * 1024 * 1024


class Sink:
    """Writes to a descriptor, which stays its caller's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written_bytes = self._begun_bytes = 0

    def write(self, data: memoryview) -> None:
        """All of it, bytes. Raises OSError."""
        for start in range(0, len(data), BEGIN_BYTES):
            self._write(data[start : start + BEGIN_BYTES])

    def _write(self, block: memoryview) -> None:
        self._written_bytes += len(block)
        while block:
            block = block[os.write(self._fd, block) :]
        if self._written_bytes - self._begun_bytes >= BEGIN_BYTES:
            # Pages that are asked to be forgotten before they are written are written now.
            digest.forget_cached_pages(self._fd, self._begun_bytes, self._written_bytes)
            self._begun_bytes = self._written_bytes
