"""A group of the kernel's for the processes of one attempt: whoever is in it cannot leave it.

Where the version 2 tree may be written; in most containers it may not, and then there is none.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import suppress

from boxcar.shared.disk import digest

# Beside version 1 it has a folder of its own.
_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_PREFIX = "boxcar-"
_MEMBERS = "cgroup.procs"
_ENTER_TRIES = 10


def name_of(cookie: str) -> str:
    """The name of an attempt's group."""
    data = cookie.encode(errors="surrogateescape")
    return f"{zlib.crc32(data):08x}{zlib.crc32(data[::-1]):08x}"


def older_name_of(cookie: str) -> str:
    """The same in the records of older releases' wrappers."""
    return digest.short(digest.of_bytes(cookie.encode(errors="surrogateescape")))


def create(name: Callable[[], str]) -> str | None:
    """A new group below the caller's own; None where it may not be made: its name is not asked."""
    own = _own()
    if own is None or not os.access(own, os.W_OK):
        return None
    group = f"{own}/{_PREFIX}{name()}"
    try:
        remove_empty()
        _make(group)
    except OSError:
        return None
    return group


def _make(group: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(group)  # noqa: PTH102  (without Path, here and below)


def remove_empty() -> None:
    """Remove what killed wrappers left beside it. One that has members stays. Raises OSError."""
    own = _own()
    for name in os.listdir(own) if own else ():  # noqa: PTH208
        if name.startswith(_PREFIX):
            remove(f"{own}/{name}")


def of_record(text: str, name: str) -> str | None:
    """A group that was written down under this name; a script may have written there as well."""
    parts = text.split("/")
    is_ours = parts[-1] == f"{_PREFIX}{name}" and not {"", ".", ".."} & {*parts[1:]}
    is_below = any(text.startswith(f"{root}/") for root in _ROOTS)
    return text if is_ours and is_below else None


def enter(group: str) -> None:
    """Move the caller there; what it starts is there too. Raises nothing."""
    for _ in range(_ENTER_TRIES):
        with suppress(OSError):
            _make(group)  # who removes empty ones meets it before anybody is in
            with open(f"{group}/{_MEMBERS}", "wb", buffering=0) as file:  # noqa: PTH123
                file.write(str(os.getpid()).encode())
            return


def members(group: str) -> list[int]:
    """The processes in it that the caller can see; none where it is gone."""
    try:
        with open(f"{group}/{_MEMBERS}", "rb") as file:  # noqa: PTH123
            found = [int(line) for line in file.read().split()]
    except OSError:
        return []
    # The kernel writes 0 for a process of another pid namespace, such as a container that has not
    # ended yet; a signal to 0 would be one to the caller's own group.
    return [pid for pid in found if pid]


def remove(group: str) -> None:
    """Where nobody is left in it; else it stays. Raises nothing."""
    with suppress(OSError):
        os.rmdir(group)  # noqa: PTH106


def _own() -> str | None:
    root = next((root for root in _ROOTS if os.access(f"{root}/cgroup.controllers", os.F_OK)), None)
    if root is None:
        return None
    with suppress(OSError), open("/proc/self/cgroup") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("0::/"):
                return f"{root}/{line.rstrip().removeprefix('0::/')}".rstrip("/")
    return None
