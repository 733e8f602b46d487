"""How often this container was killed for memory. A number that cannot be had counts as none."""

from __future__ import annotations

import os
from contextlib import suppress

_CGROUP = "/sys/fs/cgroup"
_OWN_CGROUPS = "/proc/self/cgroup"
_MOST_GROUPS = 200


def count(
    cgroup: str | os.PathLike[str] = _CGROUP, own: str | os.PathLike[str] = _OWN_CGROUPS
) -> int:
    """How often this container was killed for memory since it started; 0 where nobody counts.

    Version 2 counts what is below a group too; in version 1 each group counts for itself, so those
    that a script, a scheduler or a service manager has made below ours are asked as well.
    """
    top = os.fspath(cgroup)
    of_v2 = _own_group(own, "")
    for folder in (top, f"{top}/{of_v2}", f"{top}/unified/{of_v2}"):
        if (found := _kills_in(f"{folder}/memory.events")) is not None:
            return found
    groups = _groups(f"{top}/memory", _own_group(own, "memory"))
    return sum(_kills_in(f"{folder}/memory.oom_control") or 0 for folder in groups)


def _kills_in(path: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in _read(path).splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


def _own_group(own: str | os.PathLike[str], controller: str) -> str:
    """This process's group, relative to where the controller is mounted; '' for version 2's."""
    with suppress(OSError):
        for line in _read(own).splitlines():
            _, controllers, group = line.split(":", 2)
            if controller in controllers.split(",") and ".." not in group:
                return group.lstrip("/")
    return ""


def _groups(top: str, own: str) -> list[str]:
    """Our group and those below it, the first of them where there are very many. In a container
    the host's path is not there: then all that is mounted.
    """
    found = [f"{top}/{own}"]
    if not _is_folder(found[0]):
        found = [top]
    for folder in found:
        if len(found) >= _MOST_GROUPS:
            break
        with suppress(OSError), os.scandir(folder) as entries:
            found += sorted(entry.path for entry in entries if entry.is_dir())
    return found[:_MOST_GROUPS]


def _is_folder(path: str) -> bool:
    with suppress(OSError), os.scandir(path):
        return True
    return False


def _read(path: str | os.PathLike[str]) -> str:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  (see above)
        return file.read().decode(errors="replace")
