"""What a node has room for, and which way a cache of latents is read because of it.

`measure` reads /dev/shm, the memory limit of this container (cgroup v1 or v2), the machine's own
memory and the disk under a folder. `choose` decides from these numbers alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.disk import mounts
from boxcar.shared.disk.mounts import disk_room
from boxcar.training.data.worker_transport import SHARED, free_shared_bytes

MAPPED, PRELOADED, ON_THE_FLY = "mapped", "preloaded", "on-the-fly"
MODES = (MAPPED, PRELOADED, ON_THE_FLY)

# Private copies may take this share of what is left: the training itself has not begun to allocate.
PRELOAD_SHARE = 0.5
# A cache that fits to the last byte would leave no room for the first checkpoint's metadata.
DISK_MARGIN = 1.05
# cgroup v1 spells "no limit" as a number that no machine has.
_NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True)
class Budget:
    """What is free on this node, in bytes. None: the system does not tell."""

    ranks_on_node: int
    disk_free_bytes: int
    memory_left_bytes: int | None
    """Of the tightest limit: a cgroup above this process, or the machine."""
    shm_free_bytes: int | None
    """Room in /dev/shm. It is part of the same memory, and the workers' batches may fill it."""
    is_remote: bool = False
    """The folder lies on a network file system."""


@dataclass(frozen=True)
class Choice:
    """How the latents are read, and why, in words for a person."""

    mode: str
    reason: str


def choose(cache_bytes: int, missing_bytes: int, budget: Budget) -> Choice:
    """The way to read a cache of `cache_bytes` of which `missing_bytes` are not on the disk yet.

    Mapped is the rule: one copy in the page cache for all ranks and workers. Private copies are
    only worth it where the folder is remote, since each page fault there is a round trip; without
    room on the disk nothing is kept.
    """
    needed_bytes = int(missing_bytes * DISK_MARGIN)
    if needed_bytes > budget.disk_free_bytes:
        return Choice(
            ON_THE_FLY,
            f"{spelled(needed_bytes)} more are needed on the disk and "
            f"{spelled(budget.disk_free_bytes)} are free, so each sample is encoded when it is "
            f"asked for",
        )
    copies_bytes = budget.ranks_on_node * cache_bytes
    copies = f"{budget.ranks_on_node} x {spelled(cache_bytes)} of private memory"
    room_bytes = _room_for_copies(budget)
    if budget.is_remote and copies_bytes <= room_bytes:
        return Choice(
            PRELOADED,
            f"the folder is remote, and {copies} fit into {spelled(room_bytes)} "
            f"({_memory(budget)})",
        )
    if budget.is_remote:
        why = f"{copies} do not fit into {spelled(room_bytes)} ({_memory(budget)})"
        return Choice(MAPPED, f"{why}; the folder is remote, and a local disk would be faster")
    return Choice(
        MAPPED,
        f"{spelled(cache_bytes)} in the page cache once instead of {copies} ({_memory(budget)})",
    )


def measure(
    folder: Path,
    ranks_on_node: int,
    *,
    cgroups: Path = Path("/sys/fs/cgroup"),
    proc: Path = Path("/proc"),
    shm: Path = Path(SHARED),
) -> Budget:
    """The numbers for a cache in `folder`, which must be there. Raises OSError for that alone."""
    machine_bytes = _available_bytes(proc / "meminfo")
    lefts = [*_cgroup_lefts(cgroups, proc / "self/cgroup"), machine_bytes]
    known = [left for left in lefts if left is not None]
    mount = mounts.mount_of(folder, proc / mounts.TABLE)
    return Budget(
        ranks_on_node=ranks_on_node,
        disk_free_bytes=free_bytes(folder),
        memory_left_bytes=min(known, default=None),
        shm_free_bytes=free_shared_bytes(str(shm)),
        is_remote=mount is not None and mount.is_remote,
    )


def free_bytes(folder: Path) -> int:
    return disk_room(folder).free_bytes


def spelled(size_bytes: int) -> str:
    """A size for people: `317 MiB`."""
    value, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _room_for_copies(budget: Budget) -> int:
    if budget.memory_left_bytes is None:
        return 0
    left_bytes = budget.memory_left_bytes - (budget.shm_free_bytes or 0)
    return max(0, int(left_bytes * PRELOAD_SHARE))


def _memory(budget: Budget) -> str:
    names = (("memory left", budget.memory_left_bytes), ("/dev/shm free", budget.shm_free_bytes))
    return ", ".join(
        f"{name} {'unknown' if value is None else spelled(value)}" for name, value in names
    )


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
