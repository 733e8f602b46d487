"""Many files made durable at once.

One syncfs where that is proven to be as good: a disk of this machine whose kernel reports from it
what could not be written (Linux 5.8), and on which nobody else has much unwritten, because it waits
for that too. Else one fsync for each file and folder, side by side: FUSE does nothing in a syncfs,
and a network file system may lie behind it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from boxcar.shared.disk import atomic, in_parallel, mounts

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
        in_parallel.run_in_parallel(atomic.sync_file, files)
        in_parallel.run_in_parallel(atomic.sync_folder, folders)


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
