"""What the box has left, as numbers with their unit in the name. Only read, never changed.

A number that cannot be had is left out: a gauge must never end a run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from boxcar.shared.disk.mounts import disk_room

_CGROUP = Path("/sys/fs/cgroup")
_SHM = Path("/dev/shm")
_SHM_KEYS = ("size_bytes", "free_bytes")


def read(scratch: Path, durable: Path) -> dict[str, Any]:
    """Disk of both tiers, the memory of this container, and what it has for shared memory."""
    shm = {f"shm_{key}": value for key, value in _room_of(_SHM).items() if key in _SHM_KEYS}
    return _disk("scratch", scratch) | _disk("durable", durable) | memory() | shm


def room(path: Path) -> dict[str, int]:
    """What the file system under `path` has, and has left for us. Raises OSError."""
    disk = disk_room(path)
    numbers = {"size_bytes": disk.size_bytes, "free_bytes": disk.free_bytes}
    if disk.inodes is not None and disk.free_inodes is not None:
        numbers |= {"inodes": disk.inodes, "free_inodes": disk.free_inodes}
    return numbers


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


def process_room(cgroup: Path = _CGROUP) -> dict[str, int]:
    """How many processes and threads this container has, and may have; no limit is no number."""
    found = {}
    names = {"processes": "pids.current", "processes_limit": "pids.max"}
    for name, file in names.items():
        for folder in (cgroup, cgroup / "pids"):
            with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
                found[name] = int((folder / file).read_text())
                break
    return found


def _disk(name: str, path: Path) -> dict[str, int]:
    found = _room_of(path)
    kept = ("free_bytes", "free_inodes")
    return {f"{name}_{key}": found[key] for key in kept if key in found}


def _room_of(path: Path) -> dict[str, int]:
    try:
        return room(path)
    except OSError:
        return {}


# cgroup v1 spells "no limit" as a number that no machine has.
_NO_LIMIT_BYTES = 1 << 60


def memory(cgroup: Path = _CGROUP) -> dict[str, int]:
    """What this container uses and may use; no limit is no number."""
    names = {
        "memory_used_bytes": ("memory.current", "memory/memory.usage_in_bytes"),
        "memory_limit_bytes": ("memory.max", "memory/memory.limit_in_bytes"),
        "memory_peak_bytes": ("memory.peak", "memory/memory.max_usage_in_bytes"),
    }
    numbers = {}
    for name, places in names.items():
        for place in places:
            with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
                numbers[name] = int((cgroup / place).read_text())
                break
    if "memory_used_bytes" in numbers and (cache_bytes := _cache_bytes(cgroup)) is not None:
        numbers["memory_cache_bytes"] = cache_bytes
    return {name: number for name, number in numbers.items() if number < _NO_LIMIT_BYTES}


def _cache_bytes(cgroup: Path) -> int | None:
    """Of what is used the part that is only files somebody read, and is given back at once."""
    for place, key in (
        ("memory.stat", "inactive_file"),
        ("memory/memory.stat", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            for line in (cgroup / place).read_text().splitlines():
                name, _blank, number = line.partition(" ")
                if name == key:
                    return int(number)
    return None
