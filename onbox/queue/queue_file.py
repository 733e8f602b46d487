"""The queue file as the agent reads it, with patience for whoever is just saving it.

`>`, `cp` and some editors empty the file before they write it, others move it away. What is read in
between is nobody's wish: appended lines count at once, but a file that lost something counts only
once it has stood still.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line
from boxcar.shared.files.queue_line import Queue
from boxcar.shared.sentence import _

STILL_S = 3.0
# For a file that is gone, or empty.
GONE_S = 10.0
# A file system may keep times by the second, or by two.
GRAIN_S = 3.0


class QueueFile:
    """`queue` is what the file said when it was last believed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queue = Queue()
        self._believed: bytes | None = None
        self._believed_since = 0.0
        # What `queue` was read of: it may have the line feed that the file lacks.
        self._counted: bytes | None = None
        self._last: tuple[tuple[int, ...], bytes] | None = None
        self._seen: bytes | None = None
        self._seen_since: float | None = None

    def look(self) -> bool:
        """Read it; False while somebody seems to be saving it.

        Raises DamagedError for a file that stays away, or that stays empty where lines were.
        """
        data = self._read()
        if not self._is_at_rest(data):
            return False
        self._seen_since = None
        if not data and (data is None or self.queue.lines):
            raise DamagedError(
                _("{path}: the queue file is gone", path=self.path)
                if data is None
                else _("{path}: the queue file is empty", path=self.path)
            )
        if data != self._believed:
            self._believed, self._believed_since = data, time.monotonic()
            self._count(data or b"")
        return True

    def count_last_line(self) -> bool:
        """Whether one without a line feed counts from now on: the file has stood still."""
        counted = self._counted or b""
        still_s = time.monotonic() - self._believed_since
        found = queue_line.with_last_line(counted, still_s)
        if found == counted:
            return False
        self._count(found)
        return True

    def commented_out(self) -> tuple[CellLine, ...]:
        """The cells whose line was behind a `#` then."""
        return queue_line.commented_out(queue_line.with_last_line(self._counted or b""))

    def _count(self, data: bytes) -> None:
        self._counted, self.queue = data, queue_line.parse_queue(data)

    def _read(self) -> bytes | None:
        """What was read before, where the file is as it was then: it may have many megabytes."""
        try:
            # Opened, an NFS server is asked anew; for the name alone it would not be.
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                if self._last and self._last[0] == _stamp(found):
                    return self._last[1]
                data = file.read()
        except FileNotFoundError:
            return None
        # Of two changes within the clock's grain the second may leave no other time.
        is_settled = time.time() - found.st_mtime > GRAIN_S and len(data) == found.st_size
        self._last = (_stamp(found), data) if is_settled else None
        return data

    def _is_at_rest(self, data: bytes | None) -> bool:
        if data is not None and data == self._believed:
            return True
        if data and data.startswith(self._believed or b""):
            return True
        now = time.monotonic()
        if self._seen_since is None or data != self._seen:
            self._seen, self._seen_since = data, now
        return now - self._seen_since >= (STILL_S if data else GONE_S)


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino
