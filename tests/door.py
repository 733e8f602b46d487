"""A process in the place of `python ...` that is forked from a server, where a shell was started.

The shell writes its number into a pipe, the door, and waits. What the server forks takes the
shell's streams, folder and environment, and the shell ends as it has ended. If the shell is killed,
so is what was forked. The server ends with its stdin.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

_OTHER = "other"  # the shell goes on
# While the shell writes and reads, its own streams have other numbers.
_STREAMS = (8, 9, 2)
_ASK = """\
if [ -p "{door}" ]; then
    exec 8<&0 9>&1
    mkfifo "{door}.$$" && echo $$ >"{door}" && read -r ended <"{door}.$$" || exit 1
    rm "{door}.$$"
    case "$ended" in other) ;; -*) kill "$ended" $$ ;; *) exit "$ended" ;; esac
    exec 8<&- 9>&-
fi
"""
_PIDFD_GETFD = 438

# What to do for these words and this environment; None where it is not for this server.
Become = Callable[[list[str], dict[str, str]], Callable[[], object] | None]


def ask(door: Path) -> str:
    """Lines of shell."""
    return _ASK.format(door=door)


def is_possible() -> bool:
    """Whether the system has what it takes; else everything is started as ever."""
    with contextlib.suppress(AttributeError, OSError):
        me = os.pidfd_open(os.getpid())
        os.close(checked(libc().syscall(_PIDFD_GETFD, me, 2, 0)))
        os.close(me)
        return True
    return False


def serve_at(door: Path, become: Become) -> None:
    """For each shell that asks, fork what it wants; a line on stdout says when it is open."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    new = door.with_suffix(".new")
    os.mkfifo(new)
    asked = os.open(new, os.O_RDWR)
    new.rename(door)
    os.write(1, b"open\n")
    os.dup2(2, 1)
    asking = b""
    while asked in select.select([asked, 0], [], [])[0]:
        *whole, asking = (asking + os.read(asked, 4096)).split(b"\n")
        for pid in whole:
            if os.fork() == 0:
                os.close(asked)
                _answer(door, int(pid), become)


def _answer(door: Path, pid: int, become: Become) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asker, there = os.pidfd_open(pid), Path(f"/proc/{pid}")
    words = _texts(there / "cmdline")[1:]
    environment = dict(pair.split("=", 1) for pair in _texts(there / "environ"))
    call = become(words, environment) if _is_here(there) else None
    if call is None:
        _tell(door, pid, asker, _OTHER)
    child = os.fork()
    if child == 0:
        os.setsid()
        _take_streams(asker)
        os.close(asker)
        os.chdir(there / "cwd")
        os.environ.clear()
        os.environ.update(environment)
        raise SystemExit(call())
    ended = os.pidfd_open(child)
    if ended not in select.select([asker, ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    _tell(door, pid, asker, str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def _tell(door: Path, pid: int, asker: int, word: str) -> NoReturn:
    path = f"{door}.{pid}"
    pipe = os.open(path, os.O_RDWR)
    os.write(pipe, f"{word}\n".encode())
    while os.path.exists(path) and not select.select([asker], [], [], 0.01)[0]:  # noqa: PTH110
        pass  # it has not read, and would find nothing
    os._exit(0)


def _is_here(there: Path) -> bool:
    """A shell in a mount namespace of its own sees other files than we."""
    return (there / "ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()


def _texts(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).split("\0")[:-1]


def _take_streams(asker: int) -> None:
    for at, theirs in enumerate(_STREAMS):
        stream = checked(libc().syscall(_PIDFD_GETFD, asker, theirs, 0))
        os.dup2(stream, at)
        os.close(stream)


@functools.cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Raises OSError for a call of libc that has failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
