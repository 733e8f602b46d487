"""What the box has left, as numbers with their unit in the name. Only read, never changed.

A number that cannot be had is left out: a gauge must never end a run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from boxcar.shared.disk.room import disk_room

_CGROUP = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MOST_GROUPS = 200


def read(scratch: Path, durable: Path) -> dict[str, Any]:
    """Disk of both tiers, and the memory of this container."""
    return _disk("scratch", scratch) | _disk("durable", durable) | memory()


def room(path: Path) -> dict[str, int]:
    """What the file system under `path` has, and has left for us. Raises OSError."""
    disk = disk_room(path)
    numbers = {"size_bytes": disk.size_bytes, "free_bytes": disk.free_bytes}
    if disk.inodes is not None and disk.free_inodes is not None:
        numbers |= {"inodes": disk.inodes, "free_inodes": disk.free_inodes}
    return numbers


def oom_kills(cgroup: Path = _CGROUP, own: Path = _OWN_CGROUPS) -> int:
    """How often this container was killed for memory since it started; 0 where nobody counts.

    Version 2 counts what is below a group too; in version 1 each group counts for itself, so those
    that a script, a scheduler or a service manager has made below ours are asked as well.
    """
    for folder in (cgroup, cgroup / _own_group(own, ""), cgroup / "unified" / _own_group(own, "")):
        if (found := _oom_kills_in(folder / "memory.events")) is not None:
            return found
    top = cgroup / "memory" / _own_group(own, "memory")
    if not top.is_dir():
        top = cgroup / "memory"  # in a container the host's path is not there
    return sum(_oom_kills_in(folder / "memory.oom_control") or 0 for folder in _groups(top))


def _oom_kills_in(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


def _own_group(own: Path, controller: str) -> str:
    """This process's group, relative to where the controller is mounted; '' for version 2's."""
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controller in controllers.split(",") and ".." not in group:
                return group.lstrip("/")
    return ""


def _groups(top: Path) -> list[Path]:
    """The group and those below it, the first of them where there are very many."""
    found = [top]
    for folder in found:
        if len(found) >= _MOST_GROUPS:
            break
        with contextlib.suppress(OSError):
            found += sorted(path for path in folder.iterdir() if path.is_dir())
    return found[:_MOST_GROUPS]


def cpu_quota_cores(cgroup: Path = _CGROUP) -> float | None:
    """The CPU time that this container may use, in cores; None where it is not limited."""
    with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
        quota, period = (cgroup / "cpu.max").read_text().split()
        return int(quota) / int(period)
    # Some systems mount both counters as one, and link neither.
    for folder in (cgroup / "cpu", cgroup / "cpu,cpuacct"):
        with contextlib.suppress(OSError, ValueError):
            quota_us = int((folder / "cpu.cfs_quota_us").read_text())
            period_us = int((folder / "cpu.cfs_period_us").read_text())
            return quota_us / period_us if quota_us > 0 else None
    return None


def _disk(name: str, path: Path) -> dict[str, int]:
    try:
        found = room(path)
    except OSError:
        return {}
    kept = ("free_bytes", "free_inodes")
    return {f"{name}_{key}": found[key] for key in kept if key in found}


# cgroup v1 spells "no limit" as a number that no machine has.
_NO_LIMIT_BYTES = 1 << 60


def memory(cgroup: Path = _CGROUP) -> dict[str, int]:
    """What this container uses and may use; no limit is no number."""
    names = {
        "memory_used_bytes": ("memory.current", "memory/memory.usage_in_bytes"),
        "memory_limit_bytes": ("memory.max", "memory/memory.limit_in_bytes"),
    }
    numbers = {}
    for name, places in names.items():
        for place in places:
            with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
                numbers[name] = int((cgroup / place).read_text())
                break
    return {name: number for name, number in numbers.items() if number < _NO_LIMIT_BYTES}
