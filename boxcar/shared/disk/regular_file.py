"""Opening a file for what it is: a regular file, and nothing that keeps the reader waiting.

What we wrote is reached through no link (`open_plain`): a link in a shared folder must not show the
laptop another file. What a cell left may be a link, or lie behind one, and is opened where that
ends, inside the cell's folder (`open_left`). What a person has may lie anywhere (`open_followed`).
A pipe, a socket or a device is opened in none.
"""

from __future__ import annotations

import contextlib
import errno
import operator
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from boxcar.shared import paths
from boxcar.shared.disk import mounts
from boxcar.shared.sentence import _

# Removing what others have left under a name, whatever it is.
#
# A link is removed and never followed. A disk that is mounted there is not ours to empty.


def remove(path: Path) -> None:
    """Remove a file, link or folder; nothing where there is none. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
        refuse_mounted(path)
        try:
            shutil.rmtree(path)
        except PermissionError:
            open_up(path)
            shutil.rmtree(path)


def refuse_mounted(folder: Path) -> None:
    """Raises OSError where something is mounted at the folder or below it."""
    if points := mounts.points_below(folder):
        raise OSError(errno.EBUSY, "a disk is mounted there: unmount it", points[0])


def open_up(folder: Path) -> None:
    """Let the owner into a folder, and those below it, that scripts made read-only."""
    folder.chmod(0o700)
    for at, names, _files in os.walk(folder):
        for name in names:
            if not (path := Path(at, name)).is_symlink():
                path.chmod(0o700)


# What the disk says of a file, by which one that nobody wrote to since is known.


# Some file systems tell times in steps of two seconds: a file that was changed so shortly before
# it was read may be changed once more without another time.
_YOUNG_NS = 3_000_000_000
# Mode, size, times of content and inode (ns), inode, device.
FIELDS = ("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev")
Stamp = list[int]
# Of what a stat says.
stamp_of_stat: Callable[[os.stat_result], tuple[int, ...]] = operator.attrgetter(*FIELDS)


def stamp_of_link(path: Path) -> Stamp | None:
    """Of a link itself; None where nothing is there, or cannot be asked."""
    try:
        return [*stamp_of_stat(os.lstat(path))]
    except OSError:
        return None


def is_old(stamp: Sequence[int], now_ns: int) -> bool:
    """Whether whoever writes to the file from now on gives it another one."""
    return max(stamp[2], stamp[3]) + _YOUNG_NS < now_ns


# Without waiting for a pipe's other end.
FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StrangeFileError(OSError):
    """A name that is there and holds no regular file inside its folder; `strerror` says what."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_plain(folder: Path, relative: str) -> BinaryIO | None:
    """The file, opened for reading; None where nothing like it is there. Raises OSError."""
    if paths.has_symlink(folder, relative):
        return None
    try:
        # Opened, not looked at: what NFS remembers of a file may be old until then.
        return open_at(folder / relative)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, StrangeFileError):
        return None
    except OSError as error:
        if error.errno == errno.ESTALE:
            return None  # the name was given to another file meanwhile
        raise


def read_plain(folder: Path, relative: str) -> bytes | None:
    """Its content; None as above."""
    file = open_plain(folder, relative)
    if file is None:
        return None
    with file:
        return file.read()


def open_left(folder: Path, relative: str) -> BinaryIO:
    """What a cell left below its folder, opened for reading. Raises as `resolve_left`."""
    return open_at(resolve_left(folder, relative))


def read_left(folder: Path, relative: str, most_bytes: int) -> bytes:
    """Its content, for what has to be read whole. Raises as above, and for a larger file."""
    return read_at(resolve_left(folder, relative), most_bytes)


def resolve_left(folder: Path, relative: str) -> Path:
    """Where a name below a cell's folder really is: links are followed, and end inside the folder.

    Raises FileNotFoundError where nothing has this name, StrangeFileError for a link that dangles
    (also one above it), leads out of the folder or goes round, and OSError.
    """
    path = paths.inside(folder, relative)
    try:
        real = Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        if (link := _dangling(folder, path)) is None:
            raise
        below = _("lies below {link}, a link to nothing", link=link.relative_to(folder))
        raise StrangeFileError(path, _("is a link to nothing") if link == path else below) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StrangeFileError(path, _("is a link that goes round in a circle")) from None
    if not real.is_relative_to(os.path.realpath(folder)):
        raise StrangeFileError(path, _("is a link that leads out of {folder}", folder=folder))
    return real


def _dangling(folder: Path, path: Path) -> Path | None:
    """The first step from `folder` to `path` that is a link to nothing."""
    steps = [path, *path.parents]
    below = reversed(steps[: steps.index(folder)])
    return next((step for step in below if step.is_symlink() and not step.exists()), None)


def open_followed(path: Path) -> BinaryIO:
    """What a person's name leads to, through links wherever they lead. Raises as `open_fd`."""
    return open_at(Path(os.path.realpath(path)))


def open_at(path: Path) -> BinaryIO:
    """The file of this very name, no link. Raises as `open_fd`."""
    return os.fdopen(open_fd(path), "rb")


def read_at(path: Path, most_bytes: int) -> bytes:
    """Its content. Raises as `open_fd`, and StrangeFileError for a file that is larger."""
    with open_at(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise StrangeFileError(path, _("is larger than {most_bytes} bytes", most_bytes=most_bytes))
    return data


def open_fd(path: Path) -> int:
    """A descriptor for reading. Raises StrangeFileError for what is no regular file, OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | FLAGS)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        what = _("is a link") if error.errno == errno.ELOOP else _("is a socket or a device")
        raise StrangeFileError(path, what) from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise StrangeFileError(path, _("is not a regular file"))
