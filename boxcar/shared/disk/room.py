"""What a file system has, and has left."""

from __future__ import annotations

import os
from pathlib import Path

from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class DiskRoom:
    """`inodes` and `free_inodes` are None where they are not counted (btrfs, some networks)."""

    size_bytes: int
    free_bytes: int
    free_bytes_of_root: int  # some file systems keep a part back for root
    inodes: int | None
    free_inodes: int | None


def disk_room(folder: Path | str) -> DiskRoom:
    """Of the file system that holds `folder`. Raises OSError."""
    disk = os.statvfs(folder)
    counts_inodes = bool(disk.f_files)
    return DiskRoom(
        size_bytes=disk.f_blocks * disk.f_frsize,
        free_bytes=disk.f_bavail * disk.f_frsize,
        free_bytes_of_root=disk.f_bfree * disk.f_frsize,
        inodes=disk.f_files if counts_inodes else None,
        free_inodes=disk.f_favail if counts_inodes else None,
    )
