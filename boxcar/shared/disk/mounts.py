"""Which mount a path lies on, as the kernel tells it.

The device's number would not do: a bind mount, which is how a container gets a disk that outlives
it, has the number of the disk behind it.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from boxcar.shared.record import dataclass

# What a file system has, and has left.


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


# When a disk is full: what the system says then. A quota and a limit on one file mean the same.


# By name, for a program on a box that has nothing of ours yet.
ERRNO_NAMES = ("ENOSPC", "EDQUOT", "EFBIG")
_ERRNOS = frozenset(getattr(errno, name) for name in ERRNO_NAMES)


def is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _ERRNOS


def full_disk_error(path: str) -> OSError:
    """What a write says that a full disk cut short, where the system itself raised nothing."""
    return OSError(errno.ENOSPC, "No space left on device", path)


# Below /proc.
TABLE = "self/mountinfo"
# Where the kernel knows nothing of what other hosts write. FUSE with a subtype may be anything.
_REMOTE = (
    *("nfs", "cifs", "smb", "9p", "ceph", "lustre", "gpfs", "beegfs", "gluster", "afs"),
    "fuse.",
)


@dataclass(frozen=True)
class Mount:
    point: str
    file_system: str

    @property
    def is_remote(self) -> bool:
        # Without a subtype: `fuseblk` is a disk of this machine, `fuse` may be anything.
        return self.file_system == "fuse" or self.file_system.startswith(_REMOTE)


def mount_of(path: Path, table: Path = Path("/proc", TABLE)) -> Mount | None:
    """The mount under a path that is there; None where the system does not tell (macOS)."""
    try:
        # Names may be no UTF-8.
        lines = table.read_text(errors="surrogateescape").splitlines()
        steps = {str(step) for step in (path.resolve(), *path.resolve().parents)}
    except OSError:
        return None
    over = [mount for line in lines if (mount := _read(line)) and mount.point in steps]
    # Of two at one point the later one hides the earlier.
    return max(reversed(over), key=lambda mount: len(mount.point), default=None)


def points_below(folder: Path, table: Path = Path("/proc", TABLE)) -> list[str]:
    """Where something is mounted, at the folder or below it; none where the system does not tell.

    A link on the way to the folder is followed, as the kernel does.
    """
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
        top = os.path.realpath(folder)
    except OSError:
        return []
    points = [mount.point for line in lines if (mount := _read(line))]
    return sorted(point for point in points if f"{point}/".startswith(f"{top}/"))


def _read(line: str) -> Mount | None:
    """One line: `36 35 0:5 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/sda rw`."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(), after.split()
    if len(fields) < 5 or not kind:
        return None
    point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
    return Mount(point, kind[0])
