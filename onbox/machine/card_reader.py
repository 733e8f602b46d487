"""The GPUs of this box, read by one resident child, for which the agent never waits.

NVML doubles a process's memory, and a broken driver hangs whoever asks it, sometimes where no
signal reaches: a child that is silent is killed and left alone, and no second one is started beside
it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from onbox.machine import gpus

EVERY_S = 5.0
# A driver may take long for its first answer.
SILENT_S = 30.0
AGAIN_S = 60.0
_READ_BYTES = 1 << 16

Row = dict[str, Any]


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", sys.argv[0], "gpus", "--follow", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


class CardReader:
    def __init__(
        self,
        start: Callable[[], subprocess.Popen[bytes]] = _start,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start, self._clock = start, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._left: list[subprocess.Popen[bytes]] = []  # killed, and not gone yet
        self._rest = b""
        self._rows: list[Row] = []
        self._heard_s = self._next_start_s = clock()

    def read(self) -> list[Row]:
        """The last answer, at once; nothing where there is no card, or where none is heard of."""
        self._left = [one for one in self._left if one.poll() is None]
        if self._child is None:
            self._begin()
        if self._child is not None:
            self._hear(self._child)
        return self._rows

    def close(self) -> None:
        """End the child; it is not waited for."""
        self._give_up()

    def _begin(self) -> None:
        if self._left or self._clock() < self._next_start_s or not gpus.has_device():
            return
        try:
            self._child = self._start()
        except OSError:
            self._next_start_s = self._clock() + AGAIN_S
            return
        assert self._child.stdout
        os.set_blocking(self._child.stdout.fileno(), False)
        self._heard_s, self._rest = self._clock(), b""

    def _hear(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout
        is_over = child.poll() is not None  # asked first: what it wrote before is still to be read
        with contextlib.suppress(BlockingIOError):
            while data := os.read(child.stdout.fileno(), _READ_BYTES):
                self._take(data)
        if is_over or self._clock() - self._heard_s > SILENT_S:
            self._give_up()

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_READ_BYTES:]
        for line in lines[-1:]:
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, list) and all(isinstance(row, dict) for row in found):
                    self._rows, self._heard_s = found, self._clock()

    def _give_up(self) -> None:
        """What it said is old by now."""
        self._rows, self._next_start_s = [], self._clock() + AGAIN_S
        if (child := self._child) is None:
            return
        self._child = None
        child.kill()
        if child.stdout:
            child.stdout.close()
        if child.poll() is None:
            self._left.append(child)
