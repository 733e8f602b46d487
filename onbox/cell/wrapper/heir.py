"""The program that waits next, left behind by the one that was let in (turn.py). Where cells end
at once, a shell and an interpreter for each are what takes most of the gap between them.

Its parent ends at once, so that it comes to the agent, which adopts orphans, and says its process
id on a pipe that all of them share. One that does not come, or says nothing, is never let in.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import IO

_LOOKS_EVERY_S = 0.01
# Of what became of it, where somebody else was told.
_UNKNOWN = -signal.SIGKILL
_MOST_BYTES = 64


class Heir:
    """As much of a Popen as is asked for."""

    def __init__(self, stdin: IO[bytes], told: IO[bytes]) -> None:
        """`told` does not block."""
        self.stdin, self._told = stdin, told
        self.pid: int | None = None
        self.returncode: int | None = None
        self._asked = threading.Lock()

    def has_come(self) -> bool:
        """Whether it has said its number, lives, and is the caller's child."""
        return self._find() is not None and self.poll() is None

    def poll(self) -> int | None:
        """Of one that has not come yet nothing is known."""
        if (pid := self._find()) is None:
            return self.returncode
        with self._asked:
            if self.returncode is None:
                self.returncode = _exit_code(pid)
            return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        """Raises TimeoutExpired. Without a time: of one that has come."""
        if timeout_s is None and self.pid:
            _wait_for(self.pid)
        until = time.monotonic() + (timeout_s or 0.0)
        while (code := self.poll()) is None:
            if timeout_s is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired("an heir", timeout_s)
            time.sleep(_LOOKS_EVERY_S)
        return code

    def kill(self) -> None:
        if self.pid is None:
            self.returncode = _UNKNOWN  # it ends by itself, once it reads
        elif self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _find(self) -> int | None:
        if self.pid is None and self.returncode is None:
            said = self._told.read(_MOST_BYTES)
            if said and said.strip().isdigit():
                self.pid = int(said)
            elif said is not None:
                self.returncode = _UNKNOWN  # nobody holds the other end any more, or no heir
        return self.pid


# Of an attempt, as the agent's child: started by it, or come to it.
Wrapper = subprocess.Popen[bytes] | Heir


def _exit_code(pid: int) -> int | None:
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return _UNKNOWN
    return os.waitstatus_to_exitcode(status) if ended else None


def _wait_for(pid: int) -> None:
    """Its end, which is left for `poll` to take."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
