"""`onbox answer` in a rented box as a process that is forked there, see forked.py.

A server that has the agent's modules loaded goes into the box's namespaces. Who asks is a shell in
Python's place: it writes its number into a pipe, the door, and waits; what is forked takes its
streams, folder and environment. What is not our agent's file is run by Python itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":  # with -I no folder of ours is looked in
    sys.path.insert(0, str(Path(__file__).parents[1]))

import forked_answer
from forked import Forked, serve

DOOR = Path("/run/boxcar-door")  # gone with each end of the box
# Of the shell that is called as `python -I -S AGENT answer`. While it writes and reads, its own
# streams have other numbers.
ASK = f"""\
if [ "$4" = answer ] && [ -p {DOOR} ]; then
    exec 8<&0 9>&1
    mkfifo {DOOR}.$$ && echo $$ >{DOOR} && read -r status <{DOOR}.$$ || exit 1
    rm {DOOR}.$$
    [ "$status" = other ] || exit "$status"
    exec 8<&- 9>&-
fi
"""
STREAMS = (8, 9, 2)
OTHER = "other"
_NAMESPACES = ("uts", "ipc", "net", "pid", "mnt")  # the last hides where the others are found
_PIDFD_GETFD = 438


def open_door(init_pid: int) -> None:
    """In the box whose first process this is, while it is up."""
    # Of Python's own the server has none.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with _kind()(["door", str(init_pid)], stdout=-1, env=env) as process:
        assert process.stdout and process.stdout.read() == b"open\n"


@functools.cache
def _kind() -> type[Forked[bytes]]:
    class ForkedBox(Forked[bytes]):
        SERVER = forked_answer.server_words(str(Path(sys.base_prefix, "bin", "python3")), __file__)

    return ForkedBox


# --- in the server


def _become(words: list[str], agent: bytes) -> None:
    _enter(int(words[1]))
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    new = DOOR.with_suffix(".new")
    os.mkfifo(new)
    with os.fdopen(os.open(new, os.O_RDWR), "rb", buffering=0) as door:
        new.rename(DOOR)
        os.write(1, b"open\n")
        nothing = os.open(os.devnull, os.O_RDWR)
        for at in range(3):
            os.dup2(nothing, at)
        asking = b""
        while asking := asking + door.read(4096):
            *whole, asking = asking.split(b"\n")
            for pid in whole:
                if os.fork() == 0:
                    door.close()
                    _answer(int(pid), agent)


def _enter(init_pid: int) -> None:
    """Its namespaces; of pids that of what is forked from now on. Raises OSError."""
    places = [os.open(f"/proc/{init_pid}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    for place in places:
        _checked(_libc().setns(place, 0))
        os.close(place)


def _answer(pid: int, agent: bytes) -> NoReturn:
    """For the shell `pid`: tell it how what was forked in its place has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asker = os.pidfd_open(pid)
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[1:-1]
    if Path(words[3]).read_bytes() != agent:
        _tell(pid, asker, OTHER)
    child = os.fork()
    if child == 0:
        _take_the_place_of(pid, asker, words)
    ended = os.pidfd_open(child)
    if ended not in select.select([asker, ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)  # who asked was killed
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _tell(pid, asker, str(code if code >= 0 else 128 - code))


def _tell(pid: int, asker: int, word: str) -> NoReturn:
    pipe = os.open(f"{DOOR}.{pid}", os.O_RDWR)
    os.write(pipe, f"{word}\n".encode())
    select.select([asker], [], [])  # until it has read, else it would wait for ever
    os._exit(0)


def _take_the_place_of(pid: int, asker: int, words: list[str]) -> NoReturn:
    os.setsid()
    for at, theirs in enumerate(STREAMS):
        stream = _checked(_libc().syscall(_PIDFD_GETFD, asker, theirs, 0))
        os.dup2(stream, at)
        os.close(stream)
    os.close(asker)
    os.chdir(f"/proc/{pid}/cwd")
    environment = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")[:-1]
    os.environ.clear()
    os.environ.update(pair.split("=", 1) for pair in environment)
    forked_answer.become(words)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    data = Path(sys.argv[1]).read_bytes()
    forked_answer.load_all(sys.argv[1])
    _libc()
    serve(functools.partial(_become, agent=data))
