"""A group of the kernel's for the processes of one attempt: whoever is in it cannot leave it.

Where the version 2 tree may be written; in most containers it may not, and then there is none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

# Not typing's, and Path is imported late: each attempt's wrapper asks whether there may be one.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Beside version 1 it has a folder of its own.
_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_PREFIX = "boxcar-"
_MEMBERS = "cgroup.procs"
_ENTER_TRIES = 10


def name_of(cookie: str) -> str:
    """The name of an attempt's group."""
    from boxcar.shared.disk import digest

    return digest.short(digest.of_bytes(cookie.encode(errors="surrogateescape")))


def create(name: Callable[[], str]) -> Path | None:
    """A new group below the caller's own; None where it may not be made: its name is not asked."""
    own = _own()
    if own is None or not os.access(own, os.W_OK):
        return None
    from pathlib import Path

    group = Path(own, f"{_PREFIX}{name()}")
    try:
        remove_empty()
        group.mkdir(exist_ok=True)
    except OSError:
        return None
    return group


def remove_empty() -> None:
    """Remove what killed wrappers left beside it. One that has members stays. Raises OSError."""
    from pathlib import Path

    own = _own()
    for left in Path(own).glob(f"{_PREFIX}*") if own else ():
        remove(left)


def of_record(text: str, name: str) -> Path | None:
    """A group that was written down under this name; a script may have written there as well."""
    from pathlib import Path

    group = Path(text)
    is_ours = group.name == f"{_PREFIX}{name}" and ".." not in group.parts
    is_below = any(group.is_relative_to(root) for root in _ROOTS)
    return group if is_ours and is_below else None


def enter(group: Path) -> None:
    """Move the caller there; what it starts is there too. Raises nothing."""
    for _ in range(_ENTER_TRIES):
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)  # who removes empty ones meets it before anybody is in
            (group / _MEMBERS).write_text(str(os.getpid()))
            return


def members(group: Path) -> list[int]:
    """The processes in it that the caller can see; none where it is gone."""
    try:
        found = [int(line) for line in (group / _MEMBERS).read_text().split()]
    except OSError:
        return []
    # The kernel writes 0 for a process of another pid namespace, such as a container that has not
    # ended yet; a signal to 0 would be one to the caller's own group.
    return [pid for pid in found if pid]


def remove(group: Path) -> None:
    """Where nobody is left in it; else it stays. Raises nothing."""
    with contextlib.suppress(OSError):
        group.rmdir()


def _own() -> str | None:
    root = next((root for root in _ROOTS if os.access(f"{root}/cgroup.controllers", os.F_OK)), None)
    if root is None:
        return None
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("0::/"):
                return f"{root}/{line.rstrip().removeprefix('0::/')}"
    return None
