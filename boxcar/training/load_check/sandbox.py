"""What this process gives up before it loads a file that somebody else wrote.

Best effort, and said: the functions return a word for each thing that the kernel granted.

    no-network              not even the loopback interface
    no-tcp                  no TCP connection, no TCP listener
    no-signals              none to the processes that were there before
    read-only               no file is made, changed or removed, and no program is started
    no-new-privileges       setuid programs are worth nothing
    no-core-dump, private   its memory goes to no disk, and is shown to no other process
    first-to-go             when the memory is used up, this process ends and not a training
    file_bytes=N            no file is written further than this: 0, or room for its own stderr
    memory=N, cpu_s=N       at most so many bytes of address space, seconds of processor time

Linux has all of them from 6.12, most from 5.13; many containers forbid the first. macOS has the
limits on time, on files and on core dumps. None of them was tried there.

This is not a true security sandbox. Not covered: what may be read is not bounded, so a file that
may run code can read what the user can, and tell it on stdout; descriptors that are open already;
threads that a library has started before; faults of the kernel, of Python or of torch. The
environment is the caller's to clear of secrets.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

_GIB = 1 << 30
_LOG_BYTES = 1 << 20
# linux/sched.h, linux/prctl.h, linux/landlock.h
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_READ_FILE, _READ_DIR, _TRUNCATE = 1 << 2, 1 << 3, 1 << 14
_ALL_FILE_RIGHTS = (1 << 13) - 1  # of the first version
_ALL_TCP_RIGHTS = 0b11
_SIGNALS = 0b10
_NICE = 10


def give_way() -> None:
    """Run after what else the machine has to do: a training, the start of the next cell."""
    os.nice(max(0, _NICE - os.nice(0)))


def isolate() -> list[str]:
    """Leave the network. Before anything else is imported: it needs a process of one thread."""
    return _take(
        {
            "no-network": _leave_network,
            "no-new-privileges": _no_new_privileges,
            "first-to-go": _first_to_go,
        }
    )


def restrict(sizes_bytes: Sequence[int], *, writes_to: Sequence[int]) -> list[str]:
    """Bound the rest. After the libraries are imported: they may need files and programs for it.

    `sizes_bytes` of the files that will be loaded, one at a time. `writes_to`: the descriptors that
    this process goes on writing to.
    """
    tempfile.gettempdir()  # found by writing there, which some libraries ask for only later
    memory_bytes = _address_space_bytes() + 3 * max(sizes_bytes, default=0) + 8 * _GIB
    cpu_s = 120 + 60 * (sum(sizes_bytes) // _GIB)
    file_bytes = _room_for(writes_to)
    return _take(
        {
            "no-core-dump": partial(_limit, resource.RLIMIT_CORE, 0),
            f"file_bytes={file_bytes}": partial(_limit, resource.RLIMIT_FSIZE, file_bytes),
            f"memory={memory_bytes}": partial(_limit, resource.RLIMIT_AS, memory_bytes),
            f"cpu_s={cpu_s}": partial(_limit, resource.RLIMIT_CPU, cpu_s),
            "read-only": _read_only,
            "no-tcp": partial(_landlock, tcp=_ALL_TCP_RIGHTS),
            "no-signals": partial(_landlock, scoped=_SIGNALS),
            "private": partial(_libc, "prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0),
        }
    )


def _take(steps: dict[str, Callable[[], object]]) -> list[str]:
    return [word for word, step in steps.items() if _is_granted(step)]


def _is_granted(step: Callable[[], object]) -> bool:
    try:
        step()
    except (OSError, ValueError):
        return False
    return True


def _leave_network() -> None:
    try:
        # Root needs no user namespace, where it would lose the right to read others' files.
        _libc("unshare", _CLONE_NEWNET)
    except OSError:
        _libc("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)


def _no_new_privileges() -> None:
    _libc("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _first_to_go() -> None:
    Path("/proc/self/oom_score_adj").write_text("1000")


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _room_for(writes_to: Sequence[int]) -> int:
    """Pipes are not limited; a log that is a file may grow by a little."""
    found = [os.fstat(fd) for fd in writes_to]
    files = [status for status in found if stat.S_ISREG(status.st_mode)]
    return max((status.st_size + _LOG_BYTES for status in files), default=0)


def _address_space_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _read_only() -> None:
    # A version that does not know truncation refuses a rule about it.
    version = _libc("syscall", _LANDLOCK_CREATE_RULESET, 0, 0, 1)
    rights = _ALL_FILE_RIGHTS & ~(_READ_FILE | _READ_DIR)
    _landlock(files=rights | (_TRUNCATE if version >= 3 else 0))


def _landlock(*, files: int = 0, tcp: int = 0, scoped: int = 0) -> None:
    """Give up these rights everywhere. Raises OSError where the kernel does not know them."""
    rules = ctypes.create_string_buffer(struct.pack("=QQQ", files, tcp, scoped), 24)
    ruleset = _libc("syscall", _LANDLOCK_CREATE_RULESET, ctypes.addressof(rules), 24, 0)
    try:
        _libc("syscall", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _libc(name: str, *arguments: int) -> int:
    """Call Linux through its C library. Raises OSError."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, f"{name} is Linux's")
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_long
    # As wide as registers are: prctl and syscall look at all of each.
    result: int = function(*(ctypes.c_ulong(argument) for argument in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
