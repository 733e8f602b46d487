"""Opening a file for what it is: a regular file, and nothing that keeps the reader waiting.

What we wrote is reached through no link (`open_plain`): a link in a shared folder must not show the
laptop another file. What a cell left may be a link, or lie behind one, and is opened where that
ends, inside the cell's folder (`open_left`). What a person has may lie anywhere (`open_followed`).
A pipe, a socket or a device is opened in none.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from boxcar.shared import paths

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
        below = f"lies below {link.relative_to(folder)}, a link to nothing"
        raise StrangeFileError(path, "is a link to nothing" if link == path else below) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StrangeFileError(path, "is a link that goes round in a circle") from None
    if not real.is_relative_to(os.path.realpath(folder)):
        raise StrangeFileError(path, f"is a link that leads out of {folder}")
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
        raise StrangeFileError(path, f"is larger than {most_bytes} bytes")
    return data


def open_fd(path: Path) -> int:
    """A descriptor for reading. Raises StrangeFileError for what is no regular file, OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | FLAGS)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        what = "is a link" if error.errno == errno.ELOOP else "is a socket or a device"
        raise StrangeFileError(path, what) from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise StrangeFileError(path, "is not a regular file")
