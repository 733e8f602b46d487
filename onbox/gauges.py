"""What the box has left, as numbers with their unit in the name. Only read, never changed.

A number that cannot be had is left out: a gauge must never end a run.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

_CGROUP = Path("/sys/fs/cgroup")


def read(scratch: Path, durable: Path) -> dict[str, Any]:
    """Disk of both tiers, and the memory of this container."""
    return _disk("scratch", scratch) | _disk("durable", durable) | _memory()


def oom_kills(cgroup: Path = _CGROUP) -> int:
    """How often this container was killed for memory since it started; 0 where nobody counts."""
    for path in (cgroup / "memory.events", cgroup / "memory" / "memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    return 0


def _disk(name: str, path: Path) -> dict[str, int]:
    try:
        disk = os.statvfs(path)
    except OSError:
        return {}
    numbers = {f"{name}_free_bytes": disk.f_bavail * disk.f_frsize}
    if disk.f_files:  # btrfs and some network file systems count no inodes
        numbers[f"{name}_free_inodes"] = disk.f_favail
    return numbers


# cgroup v1 spells "no limit" as a number that no machine has.
_NO_LIMIT_BYTES = 1 << 60


def _memory(cgroup: Path = _CGROUP) -> dict[str, int]:
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
