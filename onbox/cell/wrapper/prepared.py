"""A launcher's process that is there before its turn: forked, and in its group already. What it is
to become is said to it then.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import os
import signal
import socket

from boxcar.shared import exit_codes
from onbox.cell.wrapper import gate, launcher
from onbox.cell.wrapper.launcher import Launcher

# Not typing's: see attempt.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SOME_BYTES = 65536
_LENGTH_BYTES = 8
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
        self._cookie, self._meanwhile, self._environ = cookie, meanwhile, environ or {}
        self._expected: tuple[tuple[str, ...], dict[str, str]] | None = None
        self._start()

    def _start(self) -> None:
        self._ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._ours.close()
                launcher.move_in(self.group, parent)
                if self._meanwhile:
                    _replace(self._meanwhile, self._environ, theirs)
                if said := received(theirs):
                    launcher.replace(*said)
            finally:
                os._exit(exit_codes.NOT_FOUND)
        theirs.close()
        self._ours.settimeout(_TAKEN_WITHIN_S)

    def expect(self, argv: tuple[str, ...], environ: dict[str, str], archive: str) -> None:
        """It is a Python that is to become this, most likely: it is started as far as its gate,
        which lies in `archive`. Raises OSError.
        """
        if self._expected == (argv, environ):
            return
        if self._expected:
            self._kill()
            self._start()
        self._expected = argv, environ
        read = environ.get("PYTHONPATH", "").partition(os.pathsep)[0]
        # Not nothing: what has something to say at its start is started at its turn.
        said = os.memfd_create("boxcar-gate")
        self._is_taken(argv, gate.closed(environ, archive, self._cookie, read), said)
        os.close(said)

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        """One that was killed while it waited, or hangs, costs nothing: another is started."""
        if not self._expected:
            is_taken = self._is_taken(self.argv, environ, log_fd)
        else:
            is_taken = self._expected == (self.argv, environ) and self._has_taken(log_fd)
        self._ours.close()
        if is_taken:
            return self._pid
        self._kill()
        return super().become(environ, log_fd)

    def _is_taken(self, argv: tuple[str, ...], environ: dict[str, str], log_fd: int) -> bool:
        """Whether it has all that was said."""
        pairs = [f"{name}={value}" for name, value in environ.items()]
        said = b"\0".join(map(os.fsencode, [str(len(argv)), *argv, *pairs]))
        return self._has_taken(log_fd, len(said).to_bytes(_LENGTH_BYTES, "big") + said)

    def _has_taken(self, log_fd: int, said: bytes = b"") -> bool:
        """The open file itself: who has it holds its lock."""
        try:
            socket.send_fds(self._ours, [b"\0"], [log_fd])
            if said:  # who is told nothing more may have gone on and closed its end
                self._ours.sendall(said)
            return self._ours.recv(1) == gate.TAKEN
        except ConnectionError:
            return False
        except TimeoutError:
            # From here on it cannot say so, and ends where it tries to. Had it before, it runs.
            self._ours.shutdown(socket.SHUT_RD)
            return self._ours.recv(1) == gate.TAKEN

    def end(self) -> None:
        self._kill()
        super().end()

    def _kill(self) -> None:
        self._ours.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _replace(words: Sequence[str], environ: Mapping[str, str], theirs: socket.socket) -> None:
    """Returns where that cannot be."""
    theirs.set_inheritable(True)
    silent = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    launcher.replace((*words, str(theirs.fileno())), dict(environ), silent)


def received(theirs: socket.socket) -> tuple[tuple[str, ...], dict[str, str], int] | None:
    """The launcher's command, its environment and its log, once they are said; None for an end.

    Whoever is to wait at its gate gets the number of the socket.
    """
    first, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    if not first:
        return None
    length = int.from_bytes(_all_of(theirs, _LENGTH_BYTES), "big")
    said = _all_of(theirs, length)
    # A wrapper that is killed while it says it has started nothing.
    if not said or len(said) < length:
        return None
    count, *parts = map(os.fsdecode, said.split(b"\0"))
    argv, pairs = parts[: int(count)], parts[int(count) :]
    environ = dict(pair.split("=", 1) for pair in pairs)
    theirs.sendall(gate.TAKEN)
    if gate.READ in environ:
        theirs.set_inheritable(True)
        environ[gate.GATE] = str(theirs.fileno())
    else:
        theirs.close()
    return tuple(argv), environ, fds[0]


def _all_of(theirs: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer where there are no more."""
    said = b""
    while len(said) < count and (more := theirs.recv(min(_SOME_BYTES, count - len(said)))):
        said += more
    return said
