"""A launcher's process that is there before its turn: forked, and in its group already. What it is
to become is said to it then.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import os
import signal
import socket

from boxcar.shared import exit_codes
from onbox.cell.wrapper import launcher
from onbox.cell.wrapper.launcher import Launcher

# Not typing's: see attempt.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SOME_BYTES = 65536
_LENGTH_BYTES = 8
_TAKEN = b"t"
# What hangs in an import, on a disk that is away, is not waited for longer.
_TAKEN_WITHIN_S = 10.0


class Prepared(Launcher):
    """One of `become` and `end` follows; before `become`, `argv` is set.

    `meanwhile`: a program that does what this process would do, and can do more while it waits. It
    gets the number of the socket as its last word.
    """

    def __init__(
        self, cookie: str, meanwhile: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        super().__init__((), cookie)
        self._ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._ours.close()
                launcher.move_in(self.group, parent)
                if meanwhile:
                    _replace(meanwhile, environ or {}, theirs)
                if said := received(theirs):
                    launcher.replace(*said)
            finally:
                os._exit(exit_codes.NOT_FOUND)
        theirs.close()

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        """One that was killed while it waited, or hangs, costs nothing: another is started."""
        if self._is_taken(environ, log_fd):
            return self._pid
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return super().become(environ, log_fd)

    def _is_taken(self, environ: dict[str, str], log_fd: int) -> bool:
        """Whether it has all that was said. The open file itself: who has it holds its lock."""
        pairs = [f"{name}={value}" for name, value in environ.items()]
        said = b"\0".join(map(os.fsencode, [str(len(self.argv)), *self.argv, *pairs]))
        self._ours.settimeout(_TAKEN_WITHIN_S)
        try:
            socket.send_fds(self._ours, [b"\0"], [log_fd])
            self._ours.sendall(len(said).to_bytes(_LENGTH_BYTES, "big") + said)
            self._ours.shutdown(socket.SHUT_WR)
            return self._ours.recv(1) == _TAKEN
        except (ConnectionError, TimeoutError):
            return False
        finally:
            self._ours.close()

    def end(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)
        super().end()


def _replace(words: Sequence[str], environ: Mapping[str, str], theirs: socket.socket) -> None:
    """Returns where that cannot be."""
    theirs.set_inheritable(True)
    silent = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    launcher.replace((*words, str(theirs.fileno())), dict(environ), silent)


def received(theirs: socket.socket) -> tuple[tuple[str, ...], dict[str, str], int] | None:
    """The launcher's command, its environment and its log, once they are said; None for an end."""
    first, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    if not first:
        return None
    said = b""
    while more := theirs.recv(_SOME_BYTES):
        said += more
    # A wrapper that is killed while it says it has started nothing.
    if len(said) < _LENGTH_BYTES or int.from_bytes(said[:_LENGTH_BYTES], "big") != (
        len(said) - _LENGTH_BYTES
    ):
        return None
    theirs.sendall(_TAKEN)
    theirs.close()
    count, *parts = map(os.fsdecode, said[_LENGTH_BYTES:].split(b"\0"))
    argv, pairs = parts[: int(count)], parts[int(count) :]
    return tuple(argv), dict(pair.split("=", 1) for pair in pairs), fds[0]
