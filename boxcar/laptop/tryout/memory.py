"""How much memory a try took at most: of its process and all that it started, looked at from time
to time. Only Linux tells what processes share; elsewhere nothing is known.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared.record import dataclass

_PROC = Path("/proc")
# A script's data workers and models live for longer; a look costs some milliseconds.
LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Memory:
    """At one time, or the most of several: all of it, and what of it is shared memory."""

    size_bytes: int = 0
    shm_bytes: int = 0

    def most(self, other: Memory) -> Memory:
        return Memory(max(self.size_bytes, other.size_bytes), max(self.shm_bytes, other.shm_bytes))


def wait_and_measure(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[int, Memory]:
    """The exit code, and the most memory that was seen. Raises subprocess.TimeoutExpired."""
    peak, until = Memory(), time.monotonic() + timeout_s
    while True:
        left_s = until - time.monotonic()
        try:
            return process.wait(min(LOOK_EVERY_S, max(0.0, left_s))), peak
        except subprocess.TimeoutExpired:
            if left_s <= 0:
                raise
        peak = peak.most(memory_of_tree(process.pid))


def memory_of_tree(pid: int) -> Memory:
    """What a process and its descendants hold now, each shared page counted once."""
    if sys.platform != "linux":
        return Memory()
    found = [_memory_of(one) for one in _tree(pid)]
    return Memory(sum(one.size_bytes for one in found), sum(one.shm_bytes for one in found))


def _tree(pid: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    wanted = [pid]
    while wanted:
        yield (one := wanted.pop())
        wanted += children.get(one, [])


def _memory_of(pid: int) -> Memory:
    """Of one process, its part of what it shares (PSS); nothing of one that has ended."""
    sizes: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            name, _colon, rest = line.partition(":")
            if name in ("Pss", "Pss_Shmem"):
                sizes[name] = int(rest.split()[0]) * 1024
    return Memory(sizes.get("Pss", 0), sizes.get("Pss_Shmem", 0))
