"""Removing what others have left under a name, whatever it is.

A link is removed and never followed. A disk that is mounted there is not ours to empty.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from boxcar.shared.disk import mounts


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
    for at, names, _ in os.walk(folder):
        for name in names:
            if not (path := Path(at, name)).is_symlink():
                path.chmod(0o700)
