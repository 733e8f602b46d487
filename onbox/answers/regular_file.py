"""Opening a file below a folder of ours for what it is: a regular file, reached through no link.

What is sent to the laptop is read so: a link in a shared folder must not show it another file, and
a pipe must not keep it waiting.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from boxcar.shared import paths


def open_plain(folder: Path, relative: str) -> BinaryIO | None:
    """The file, opened for reading; None where nothing like it is there. Raises OSError."""
    if paths.has_symlink(folder, relative):
        return None
    try:
        # Opened, not looked at: what NFS remembers of a file may be old until then.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(folder / relative, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ESTALE):
            return None  # a link, a socket, or a name that was given to another file meanwhile
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    return None


def read_plain(folder: Path, relative: str) -> bytes | None:
    """Its content; None as above."""
    file = open_plain(folder, relative)
    if file is None:
        return None
    with file:
        return file.read()
