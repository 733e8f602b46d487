"""What another pod's ranks print, on its way into the cell's log: whole lines, each once."""

from __future__ import annotations

import os
from pathlib import Path

_MOST_BYTES = 1 << 20


class NodeLog:
    def __init__(self, path: Path) -> None:
        """It need not be there yet."""
        self._path, self._at = path, 0

    def copy_to(self, fd: int, *, is_last: bool = False) -> None:
        """What is new of it; an unfinished line waits, unless it is the last. Raises OSError."""
        while data := self._read():
            end = len(data) if is_last and len(data) < _MOST_BYTES else data.rfind(b"\n") + 1
            if end == 0 and len(data) < _MOST_BYTES:
                return
            whole = data[: end or len(data)]
            self._at += len(whole)
            while whole:
                whole = whole[os.write(fd, whole) :]

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as log:
                log.seek(self._at)
                return log.read(_MOST_BYTES)
        except FileNotFoundError:
            return b""
