"""A launcher's process that is there before its turn: forked, and in its group already.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import os
import socket

from boxcar.shared import exit_codes
from onbox.cell.wrapper import launcher
from onbox.cell.wrapper.launcher import Launcher

_SOME_BYTES = 65536
# A wrapper that is killed while it says the environment has started nothing.
_END = b"\0\0"


class Prepared(Launcher):
    """One of `become` and `end` follows."""

    def __init__(self, argv: tuple[str, ...], cookie: str) -> None:
        super().__init__(argv, cookie)
        self._ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._ours.close()
                launcher.move_in(self.group, parent)
                _wait_and_become(argv, theirs)
            finally:
                os._exit(exit_codes.NOT_FOUND)
        theirs.close()

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        # The open file itself: its lock is held by whoever has it.
        pairs = b"\0".join(os.fsencode(f"{name}={value}") for name, value in environ.items())
        try:
            socket.send_fds(self._ours, [b"\0"], [log_fd])
            self._ours.sendall(pairs + _END)
        except BrokenPipeError:
            pass  # it was killed, as its end tells
        self._ours.close()
        return self._pid

    def end(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)
        super().end()


def _wait_and_become(argv: tuple[str, ...], theirs: socket.socket) -> None:
    said, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    if not said:
        return
    pairs = b""
    while more := theirs.recv(_SOME_BYTES):
        pairs += more
    if not pairs.endswith(_END):
        return
    environ = dict(os.fsdecode(pair).split("=", 1) for pair in pairs.split(b"\0") if pair)
    launcher.replace(argv, environ, fds[0])
