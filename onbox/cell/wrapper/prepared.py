"""A launcher's process that is there before its turn: forked, and in its group already. What it is
to become is said to it then.

Moving a process into a group of the kernel's takes as long as a bare Python's start, or more.
"""

from __future__ import annotations

import _socket
import os
import sys

from boxcar.shared import exit_codes
from onbox.cell.wrapper import gate, launcher
from onbox.cell.wrapper.launcher import Launcher
from onbox.machine import process
from onbox.machine.light import signal, suppress

# Not typing's: see process.py. Nor socket's own, above, which has enums and selectors.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # A program's words, and its environment.
    Begun = tuple[tuple[str, ...], dict[str, str]]

# Before the script: the program and -u.
_OPTIONS = 2
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
        self._expected: Begun | None = None
        self._is_any_alike = self._is_called = False
        self._start()

    def _start(self) -> None:
        self._ours, theirs = _socket.socketpair()
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

    def expect(
        self, argv: tuple[str, ...], environ: dict[str, str], archive: str, *, is_any_alike: bool
    ) -> None:
        """It is a Python that is to become this, most likely, or `is_any_alike`, one like it: it is
        started as far as its gate, which lies in `archive`. Raises OSError.
        """
        if self._may_become(argv, environ):
            return
        if self._expected:
            self._kill()
            self._start()
        self._expected, self._is_any_alike = (argv, environ), is_any_alike
        read = environ.get("PYTHONPATH", "").partition(os.pathsep)[0]
        if is_any_alike:
            argv, environ = _in_common(argv, environ)
        own = {process.COOKIE: self._cookie, gate.READ: read, "PYTHONPATH": archive}
        # Not nothing: what has something to say at its start is started at its turn.
        said = os.memfd_create("boxcar-gate")
        self._is_taken(lambda: self._say(argv, environ | own, said))
        os.close(said)

    def _may_become(self, argv: tuple[str, ...], environ: dict[str, str]) -> bool:
        """Whether what comes to its gate can be let in as this."""
        if self._expected is None or not self._is_any_alike:
            return self._expected == (argv, environ)
        return _in_common(*self._expected) == _in_common(argv, environ)

    def call(self, environ: dict[str, str], log_fd: int) -> None:
        """What waits at its gate gets all that it needs, and goes once it is to become it."""
        if not self._expected or not self._may_become(self.argv, environ):
            return
        behind = self.argv[_end_of_script(self.argv) :]
        words = (gate.TOLD_LATE, *behind) if self._is_any_alike else ()
        with suppress(OSError):
            self._say(words, gate.told_late(environ), log_fd)
            self._is_called = True

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        """One that was killed while it waited, or hangs, costs nothing: another is started."""
        is_taken = False
        if not self._expected:
            is_taken = self._is_taken(lambda: self._say(self.argv, environ, log_fd))
        elif self._is_called:
            is_taken = self._is_taken(lambda: self._ours.sendall(gate.GO))
        self._ours.close()
        if is_taken:
            return self._pid
        self._kill()
        return super().become(environ, log_fd)

    def _say(self, argv: tuple[str, ...], environ: dict[str, str], log_fd: int) -> None:
        """With the open log itself: who has it holds its lock."""
        send_open(self._ours, log_fd)
        self._ours.sendall(spelled(argv, environ))

    def _is_taken(self, say: Callable[[], None]) -> bool:
        """Whether it has all that is said."""
        try:
            say()
            return self._ours.recv(1) == gate.TAKEN
        except ConnectionError:
            return False
        except TimeoutError:
            # From here on it cannot say so, and ends where it tries to. Had it before, it runs.
            self._ours.shutdown(_socket.SHUT_RD)
            return self._ours.recv(1) == gate.TAKEN

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


def spelled(words: Sequence[str], environ: Mapping[str, str]) -> bytes:
    """What is said behind the open log: see gate.heard."""
    pairs = [f"{name}={value}" for name, value in environ.items()]
    said = b"\0".join(map(os.fsencode, [str(len(words)), *words, *pairs]))
    return len(said).to_bytes(gate.LENGTH_BYTES, "big") + said


def _in_common(argv: tuple[str, ...], environ: dict[str, str]) -> Begun:
    """What cells of one launch have in common: the program, its options and the script or module,
    and the variables by which a Python begins.
    """
    late = gate.told_late(environ)
    kept = {name: value for name, value in environ.items() if name not in late}
    return (*argv[: _end_of_script(argv)], gate.TOLD_LATE), kept


def _end_of_script(argv: tuple[str, ...]) -> int:
    """Where the words behind the script or module begin."""
    return _OPTIONS + words_of_script(argv[_OPTIONS:])


def words_of_script(words: Sequence[str]) -> int:
    """How many of these say what a Python is to run: a script, or -m and a module."""
    return 2 if words and words[0] == "-m" else 1


def received(theirs: _socket.socket) -> tuple[tuple[str, ...], dict[str, str], int] | None:
    """The launcher's command, its environment and its log, once they are said; None for an end.

    Whoever is to wait at its gate gets the number of the socket.
    """
    said = gate.heard(theirs)
    if not said:
        return None
    argv, environ, log_fd = said
    theirs.sendall(gate.TAKEN)
    if gate.READ in environ:
        os.set_inheritable(theirs.fileno(), True)
        environ[gate.GATE] = str(theirs.fileno())
    else:
        theirs.close()
    return tuple(argv), environ, log_fd
