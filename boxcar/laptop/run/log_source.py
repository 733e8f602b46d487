"""Where a cell's log is read from: a file on this machine, or a box that is asked for slices."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.errors import TemporaryError
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks

# How far back the last lines are looked for: a progress bar is one endless line.
MOST_TAIL_BYTES = 8 * 1024 * 1024
# How long a box holds a question whose answer would be nothing.
HELD_S = 20
_BLOCK_BYTES = 64 * 1024
_CHUNK_BYTES = 1024 * 1024


class LogSource(Protocol):
    poll_s: ClassVar[float]

    @property
    def is_cut(self) -> bool:
        """Whether the last look did not get there, so that nothing new means nothing."""

    def end(self, lines: int) -> tuple[bytes, int]:
        """The last complete lines with what is unfinished after them, and the offset of the end."""

    def since(self, offset: int, *, is_to_wait: bool = False) -> tuple[bytes, int]:
        """What stands behind the offset, and the next one. A log that was replaced begins anew.
        `is_to_wait`: where that is nothing, and who has the log can tell when there is more.
        """


@dataclass(frozen=True)
class FileLog:
    poll_s: ClassVar[float] = 0.5
    is_cut: ClassVar[bool] = False
    path: Path

    def end(self, lines: int) -> tuple[bytes, int]:
        with self.path.open("rb") as file:
            end = position = file.seek(0, os.SEEK_END)
            data = b""
            while position and data.count(b"\n") <= lines and len(data) < MOST_TAIL_BYTES:
                size_bytes = min(_BLOCK_BYTES, position)
                position -= size_bytes
                file.seek(position)
                data = file.read(size_bytes) + data
        return b"\n".join(data.split(b"\n")[-lines - 1 :]), end

    def since(self, offset: int, *, is_to_wait: bool = False) -> tuple[bytes, int]:
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < offset:
                    offset = 0
                file.seek(offset)
                data = file.read(_CHUNK_BYTES)
        except FileNotFoundError:
            return b"", 0
        return data, offset + len(data)


@dataclass
class BoxLog:
    """The log of a cell on a box. A dropped link is waited for, and the box waits for a line."""

    poll_s: ClassVar[float] = 2.0
    run: OpenRun
    box: str
    cell: str
    is_cut: bool = field(default=False, init=False)
    _asked_s: float = field(default=float("-inf"), init=False)

    def is_there(self) -> bool:
        return self._ask(offset=None, lines=1).is_there

    def end(self, lines: int) -> tuple[bytes, int]:
        found = self._ask(offset=None, lines=lines)
        return found.data, found.offset

    def since(self, offset: int, *, is_to_wait: bool = False) -> tuple[bytes, int]:
        if is_to_wait:  # of a script that prints all the time, a slice now and then
            time.sleep(max(0.0, self._asked_s + self.poll_s - time.monotonic()))
            self._asked_s = time.monotonic()
        try:
            found = self._ask(offset=offset, lines=0, wait_s=HELD_S if is_to_wait else 0)
        except TemporaryError as error:
            if not self.is_cut:
                self.run.tell(
                    _(
                        "{error}; the log continues when the box answers again (Ctrl-C to leave)",
                        error=error,
                    )
                )
            self.is_cut = True
            return b"", offset
        self.is_cut = False
        return found.data, found.offset

    def _ask(self, *, offset: int | None, lines: int, wait_s: int = 0) -> run_asks.LogSlice:
        question = run_asks.ReadLog(offset, lines, MOST_TAIL_BYTES, self.cell, wait_s=wait_s)
        return self.run.ask(self.box, question)
