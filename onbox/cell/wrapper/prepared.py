"""A launcher's process that is there before its turn: forked, and in its group already. What it is
to become is said to it then.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import _socket
import os
import sys

from boxcar.shared import exit_codes
from onbox.cell.wrapper import launcher
from onbox.cell.wrapper.launcher import Launcher
from onbox.machine.light import signal

# Not typing's: see process.py. Nor socket's own, above, which has enums and selectors.
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
        self._ours, theirs = _socket.socketpair()
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
        self._ours.settimeout(_TAKEN_WITHIN_S)

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        """One that was killed while it waited, or hangs, costs nothing: another is started."""
        is_taken = self._is_taken(environ, log_fd)
        self._ours.close()
        if is_taken:
            return self._pid
        self._kill()
        return super().become(environ, log_fd)

    def _is_taken(self, environ: dict[str, str], log_fd: int) -> bool:
        """Whether it has all that is said. With the open log itself: who has it holds its lock."""
        try:
            send_open(self._ours, log_fd)
            self._ours.sendall(_spelled(self.argv, environ))
            return self._ours.recv(1) == _TAKEN
        except ConnectionError:
            return False
        except TimeoutError:
            # From here on it cannot say so, and ends where it tries to. Had it before, it runs.
            self._ours.shutdown(_socket.SHUT_RD)
            return self._ours.recv(1) == _TAKEN

    def end(self) -> None:
        self._kill()
        super().end()

    def _kill(self) -> None:
        self._ours.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def send_open(ours: _socket.socket, fd: int) -> None:
    """The open file itself, with one byte."""
    right = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
    ours.sendmsg([b"\0"], [right])


def _replace(words: Sequence[str], environ: Mapping[str, str], theirs: _socket.socket) -> None:
    """Returns where that cannot be."""
    os.set_inheritable(theirs.fileno(), True)
    silent = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    launcher.replace((*words, str(theirs.fileno())), dict(environ), silent)


def _spelled(words: Sequence[str], environ: Mapping[str, str]) -> bytes:
    """What is said behind the open log."""
    pairs = [f"{name}={value}" for name, value in environ.items()]
    said = b"\0".join(map(os.fsencode, [str(len(words)), *words, *pairs]))
    return len(said).to_bytes(_LENGTH_BYTES, "big") + said


def received(theirs: _socket.socket) -> tuple[tuple[str, ...], dict[str, str], int] | None:
    """The launcher's command, its environment and its log, once they are said; None where that ends
    before it is whole: a wrapper that is killed while it says them has started nothing.
    """
    first, ancillary, _, _ = theirs.recvmsg(1, _socket.CMSG_SPACE(4))
    length = int.from_bytes(_all_of(theirs, _LENGTH_BYTES), "big")
    said = _all_of(theirs, length)
    if not first or not said or len(said) < length:
        return None
    theirs.sendall(_TAKEN)
    theirs.close()
    count, *parts = map(os.fsdecode, said.split(b"\0"))
    argv, pairs = parts[: int(count)], parts[int(count) :]
    log_fd = int.from_bytes(ancillary[0][2][:4], sys.byteorder)
    return tuple(argv), dict(pair.split("=", 1) for pair in pairs), log_fd


def _all_of(theirs: _socket.socket, count: int) -> bytes:
    """So many bytes, or fewer where there are no more."""
    said = b""
    while len(said) < count:
        more = theirs.recv(min(_SOME_BYTES, count - len(said)))
        if not more:
            break
        said += more
    return said
