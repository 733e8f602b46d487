"""A launcher's process that is there before its turn: forked, and in its group already. What it is
to become is said to it then.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import os
import socket

from boxcar.shared import exit_codes
from onbox.cell.wrapper import launcher
from onbox.cell.wrapper.launcher import Launcher

_SOME_BYTES = 65536
_LENGTH_BYTES = 8


class Prepared(Launcher):
    """One of `become` and `end` follows; before `become`, `argv` is set."""

    def __init__(self, cookie: str) -> None:
        super().__init__((), cookie)
        self._ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._ours.close()
                launcher.move_in(self.group, parent)
                _wait_and_become(theirs)
            finally:
                os._exit(exit_codes.NOT_FOUND)
        theirs.close()

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        # The open file itself: its lock is held by whoever has it.
        pairs = [f"{name}={value}" for name, value in environ.items()]
        said = b"\0".join(map(os.fsencode, [str(len(self.argv)), *self.argv, *pairs]))
        try:
            socket.send_fds(self._ours, [b"\0"], [log_fd])
            self._ours.sendall(len(said).to_bytes(_LENGTH_BYTES, "big") + said)
        except BrokenPipeError:
            pass  # it was killed, as its end tells
        self._ours.close()
        return self._pid

    def end(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)
        super().end()


def _wait_and_become(theirs: socket.socket) -> None:
    first, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    if not first:
        return
    said = b""
    while more := theirs.recv(_SOME_BYTES):
        said += more
    # A wrapper that is killed while it says it has started nothing.
    if len(said) < _LENGTH_BYTES or int.from_bytes(said[:_LENGTH_BYTES], "big") != (
        len(said) - _LENGTH_BYTES
    ):
        return
    count, *parts = map(os.fsdecode, said[_LENGTH_BYTES:].split(b"\0"))
    argv, pairs = parts[: int(count)], parts[int(count) :]
    launcher.replace(tuple(argv), dict(pair.split("=", 1) for pair in pairs), fds[0])
