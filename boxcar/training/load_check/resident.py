"""A process that has all loaded, reads no artifact, and forks a child for each load check.

    python -m boxcar.training.load_check.resident [KIND ...]     with a socket as its stdin

It has imported what it takes to load files of these kinds; a child imports the rest for itself.

It has one thread and no network. Each child restricts itself as one that was started anew does
(sandbox.py: that cannot be taken back, so none is used twice), and dies with this process. Bytes on
the socket: READY from here once all is loaded; CHECK with the child's stdin, stdout and stderr, and
one END, after which nothing of the child lives. Each CHECK is answered by a line, the child's exit
code, negative for a signal. It ends with the socket, at any other word, and when it was idle.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from boxcar.shared.load_child import CHECK, END, IDLE_S, READY
from boxcar.training.load_check import artifacts, sandbox
from boxcar.training.load_check.__main__ import main as check

_PR_SET_PDEATHSIG = 1


def main() -> int:
    asks = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    sandbox.give_way()
    sandbox.isolate()
    artifacts.import_libraries(sys.argv[1:])
    # What forks with other threads may hang in a lock that one of them held.
    if len(list(Path("/proc/self/task").iterdir())) != 1:
        return 1
    woken = _wake_at_ends()
    with contextlib.suppress(OSError):  # whoever asked is gone
        asks.sendall(READY)
        while select.select([asks], [], [], IDLE_S)[0]:
            word, streams, *_ = socket.recv_fds(asks, 1, 3)
            if word != CHECK or len(streams) != 3:
                return 0
            _one_check(asks, streams, woken)
    return 0


def _wake_at_ends() -> int:
    """A descriptor that can be read once a child has ended."""
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    return woken


def _one_check(asks: socket.socket, streams: Sequence[int], woken: int) -> None:
    me = os.getpid()
    if (child := os.fork()) == 0:
        _be_the_child(me, asks, streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(child, child)  # the child does too: whoever is first
    was_ended = _wait(asks, child, woken)
    # It is not reaped yet, so the number is its own; so does what it has started end.
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asks.sendall(f"{code}\n".encode())
    if not was_ended and asks.recv(1) != END:
        raise OSError("no END")


def _wait(asks: socket.socket, child: int, woken: int) -> bool:
    """Until it has ended, or shall end: then True."""
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        ready = select.select([asks.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        if asks.fileno() in ready:
            asks.recv(1)
            return True
    return False


def _be_the_child(parent: int, asks: socket.socket, streams: Sequence[int]) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        asks.close()
        for at, stream in enumerate(streams):
            os.dup2(stream, at)
        os.closerange(3, max(streams) + 1)
        if os.getppid() == parent:
            code = check()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
