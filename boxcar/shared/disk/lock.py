"""Locks that a dead process cannot keep: flock(2) on a file that is never removed.

The lock lies on the open file description, so whoever inherits the descriptor holds the lock too:
it is free only when the last of them has ended. On NFSv4 it excludes other hosts as well.

A file system without flock (Lustre without its option, NFS without a lock daemon) has a stand-in
in this machine's memory, which keeps out the processes of this machine only. What has to exclude
other machines there needs a proof of its own, see `is_true`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

# Not typing's: an attempt's wrapper imports this, and as little as can be.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Of flock, where a file system has none.
_NONE_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_MEMORY = "/dev/shm"


def hold(path: Path, patience_s: float = 2.0, *, is_stand_in: bool = False) -> int | None:
    """Take the lock; the descriptor that holds it, or None where somebody else keeps it.

    The patience is for whoever only looks, with `is_held`, at the same moment. `is_stand_in`: as
    `try_stand_in`.
    """
    take = try_stand_in if is_stand_in else try_hold
    until = time.monotonic() + patience_s
    while (fd := take(path)) is None and time.monotonic() < until:
        time.sleep(0.05)
    return fd


def try_hold(path: Path) -> int | None:
    """Take the lock now; the descriptor that holds it, or None where somebody else does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    is_held = False
    try:
        is_held = try_lock(fd)
    except OSError as error:
        if not is_none_here(error):
            raise
        return try_stand_in(path)
    finally:
        if not is_held:
            os.close(fd)
    return fd if is_held else None


def is_none_here(error: OSError) -> bool:
    """Whether a lock was refused because the file system has none."""
    return error.errno in _NONE_HERE


def is_true(path: Path) -> bool:
    """Whether flock works on the file system of `path`. That it excludes other machines too is not
    said by it: some let each node keep locks for itself.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try_lock(fd)
    except OSError as error:
        if not is_none_here(error):
            raise
        return False
    finally:
        os.close(fd)
    return True


def try_stand_in(path: Path | str) -> int | None:
    """As `try_hold`, for this machine alone."""
    fd = os.open(_stand_in(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    is_held = False
    try:
        is_held = try_lock(fd)
    finally:
        if not is_held:
            os.close(fd)
    return fd if is_held else None


def _stand_in(path: Path | str) -> Path:
    """Raises PermissionError where somebody else has taken the folder's name."""
    import tempfile
    from pathlib import Path

    from boxcar.shared.disk import digest

    place = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
    folder = Path(place, f"boxcar-locks-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "is somebody else's", str(folder))
    return folder / digest.of_bytes(os.fsencode(os.path.realpath(path)))


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep(fd: int, patience_s: float = 2.0) -> bool:
    """Whether the lock of this descriptor is ours still; False where somebody else has it by now.

    A file server takes the locks of a host that was out of reach for too long (NFS: a lease, of
    some 90 s), and its processes are not told. One that nobody wants meanwhile is taken back.
    """
    until = time.monotonic() + patience_s
    while not (is_ours := try_lock(fd)) and time.monotonic() < until:
        time.sleep(0.05)
    return is_ours


def wait_until_free(path: Path) -> None:
    """Blocks while somebody holds the lock of the file that lies there now. Raises OSError."""
    fd = _open_to_ask(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock. Asks with a shared lock, for an instant."""
    try:
        fd = _open_to_ask(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if not is_none_here(error):
            raise
        return is_held(_stand_in(path))
    finally:
        os.close(fd)
    return False


def _open_to_ask(path: Path) -> int:
    # Without waiting: the lock of an attempt lies where its script may have put a pipe.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
