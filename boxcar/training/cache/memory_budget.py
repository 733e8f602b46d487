"""What a node has room for, and which way a cache of latents is read because of it.

`choose` decides from the disk under the cache. `memory_left_bytes` reads the memory limit of this
container (cgroup v1 or v2) and the machine's own memory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.disk.mounts import disk_room
from boxcar.training.reporting.say import size_text

MAPPED, PRELOADED, ON_THE_FLY = "mapped", "preloaded", "on-the-fly"
MODES = (MAPPED, PRELOADED, ON_THE_FLY)

# A cache that fits to the last byte would leave no room for the first checkpoint's metadata.
DISK_MARGIN = 1.05
# cgroup v1 spells "no limit" as a number that no machine has.
_NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True)
class Choice:
    """How the latents are read, and why, in words for a person."""

    mode: str
    reason: str


def choose(cache_bytes: int, missing_bytes: int, disk_free_bytes: int) -> Choice:
    """The way to read a cache of `cache_bytes` of which `missing_bytes` are not on the disk yet.

    Mapped, which is one copy in the page cache for all ranks and workers; without room on the disk
    nothing is kept. Preloaded is chosen by people alone.
    """
    needed_bytes = int(missing_bytes * DISK_MARGIN)
    if needed_bytes > disk_free_bytes:
        return Choice(
            ON_THE_FLY,
            f"{size_text(needed_bytes)} more are needed on the disk and "
            f"{size_text(disk_free_bytes)} are free, so each sample is encoded when asked for",
        )
    return Choice(
        MAPPED, f"{size_text(cache_bytes)} in the page cache once, for all ranks and workers"
    )


def free_bytes(folder: Path) -> int:
    return disk_room(folder).free_bytes


def memory_left_bytes(
    cgroups: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")
) -> int | None:
    """Of the tightest limit: a cgroup above this process, or the machine. None: nobody tells."""
    lefts = [*_cgroup_lefts(cgroups, proc / "self/cgroup"), _available_bytes(proc / "meminfo")]
    return min((left for left in lefts if left is not None), default=None)


def _available_bytes(meminfo: Path) -> int | None:
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    return None


def _cgroup_lefts(cgroups: Path, own: Path) -> Iterator[int]:
    """What each limit above this process leaves; any of them kills."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _lefts(cgroups, path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _lefts(cgroups / "memory", path, *names)


def _lefts(root: Path, path: str, limit_name: str, used_name: str) -> Iterator[int]:
    # In a container the path may be the host's, which is not there: its root is what is mounted.
    step = root / path.lstrip("/")
    for folder in (step, *step.parents):
        with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
            limit_bytes = int((folder / limit_name).read_text())
            if limit_bytes < _NO_LIMIT_BYTES:
                used_bytes = int((folder / used_name).read_text())
                yield max(0, limit_bytes - used_bytes + _reclaimable_bytes(folder))
        if folder == root:
            return


def _reclaimable_bytes(folder: Path) -> int:
    """File pages that nobody used lately: the kernel gives them back before it kills."""
    with contextlib.suppress(OSError):
        numbers = dict(line.split(None, 1) for line in _stat_lines(folder))
        return int(numbers.get("total_inactive_file", numbers.get("inactive_file", "0")))
    return 0


def _stat_lines(folder: Path) -> list[str]:
    return (folder / "memory.stat").read_text().splitlines()
