"""Many files made durable at once.

One syncfs where that is proven to be as good: a disk of this machine whose kernel reports from it
what could not be written (Linux 5.8), and on which nobody else has much unwritten, because it waits
for that too. Else one fsync for each file and folder, side by side: FUSE does nothing in a syncfs,
and a network file system may lie behind it.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from boxcar.shared.disk import atomic, mounts

# The same for many files, a few at once: what waits for a disk waits together.
#
# What is done in no time is done one after another: threads that only walk through Python stand in
# each other's way, and take twice as long. Whoever reads from a disk or hashes a MB lets others on.


One = TypeVar("One")
Found = TypeVar("Found")
_MOST_AT_ONCE = 8
# Of fewer nobody has to know how long they take.
_MANY_THINGS = 64
# After one that was not quick so many are done at once, until one is tried alone again.
_BLOCK = 256
_QUICK_S = 0.001


def run_in_parallel(act: Callable[[One], Found], these: Collection[One]) -> list[Found]:
    """What `act` says of each, in their order. Raises what the first of them raises."""
    if len(these) < 2:
        return [act(one) for one in these]
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(these), 2 * (os.cpu_count() or 1))) as pool:
        if len(these) < _MANY_THINGS:
            return list(pool.map(act, these))
        return list(_as_they_take(act, [*these], pool))


def _as_they_take(
    act: Callable[[One], Found], these: Sequence[One], pool: ThreadPoolExecutor
) -> Iterator[Found]:
    at = 0
    while at < len(these):
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        yield act(these[at])
        at += 1
        if not is_quick(time.perf_counter() - began_s, time.thread_time() - cpu_s):
            yield from pool.map(act, these[at : at + _BLOCK])
            at += _BLOCK


def is_quick(took_s: float, cpu_s: float) -> bool:
    """Whether it took next to nothing, and has waited for nobody. Pure."""
    return took_s < _QUICK_S and took_s < 2 * cpu_s


_LOCAL = ("ext4", "xfs", "btrfs")
# Before this a syncfs that could not write said nothing.
_REPORTS_ERRORS = (5, 8)
_MOST_FOREIGN_BYTES = 256 * 1024 * 1024
# Below, fsyncs are as fast, and wait for nobody else.
_MANY = 4
_MEMINFO = Path("/proc/meminfo")


class TreeSync:
    """Opened before anything is written below `folder`, or an error of the disk may be missed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> TreeSync:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def make_durable(
        self, files: Collection[Path], folders: Collection[Path] = (), size_bytes: int = 0
    ) -> None:
        """Return when these are on the disk; `size_bytes` is what was written of them.

        Raises OSError where one could not be written.
        """
        is_many = len(files) + len(folders) >= _MANY
        if is_many and has_one_sync(self._folder) and is_quiet(size_bytes):
            _sync_file_system(self._fd, self._folder)
            return
        run_in_parallel(atomic.sync_file, files)
        run_in_parallel(atomic.sync_folder, folders)


def make_folders(folders: Iterable[Path]) -> set[Path]:
    """Create them with their parents; every folder that then has a new name in it, unsynced."""
    changed: set[Path] = set()
    for folder in folders:
        missing = atomic.missing_steps(folder)
        folder.mkdir(parents=True, exist_ok=True)
        changed.update(step.parent for step in missing)
    return changed


def has_one_sync(folder: Path, release: str = "") -> bool:
    """Whether one syncfs there is worth as much as an fsync of each file. Linux only."""
    mount = mounts.mount_of(folder)
    if mount is None or mount.file_system not in _LOCAL:
        return False
    return _version(release or os.uname().release) >= _REPORTS_ERRORS and _syncfs() is not None


def is_quiet(size_bytes: int, meminfo: Path = _MEMINFO) -> bool:
    """Whether little is unwritten on this machine beside what was just written here."""
    try:
        lines = [line.split() for line in meminfo.read_text().splitlines()]
    except OSError:
        return False
    unwritten_kib = sum(int(line[1]) for line in lines if line[0] in ("Dirty:", "Writeback:"))
    return unwritten_kib * 1024 <= size_bytes + _MOST_FOREIGN_BYTES


def _version(release: str) -> tuple[int, ...]:
    major, minor, *_ = [*release.split("."), "0"]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _syncfs() -> Callable[[int], int] | None:
    function: Callable[[int], int] | None = getattr(
        ctypes.CDLL(None, use_errno=True), "syncfs", None
    )
    return function


def _sync_file_system(fd: int, folder: Path) -> None:
    sync = _syncfs()
    assert sync
    if sync(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
