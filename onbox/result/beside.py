"""What a cell wrote beside its code: out of the sight of every cell, and kept for a person.

By rename, so that a folder of any size costs one step. Where that cannot be done, as between two
disks, it is removed.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from boxcar.shared.disk import checked_copy, regular_file
from boxcar.shared.paths import ScratchPaths


def move(code: Path, names: Iterable[str], to: Path) -> None:
    """Move these paths below `code` to the same paths below `to`. May be done again.

    Raises OSError for what can be neither moved nor removed.
    """
    for name in names:
        source = code / name
        if not os.path.lexists(source):
            continue
        target = free(to / name)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            rename(source, target)
        except OSError as error:
            if error.errno == errno.EBUSY:
                regular_file.refuse_mounted(source)  # says more than EBUSY
            if error.errno != errno.EXDEV:
                raise
            regular_file.remove(source)


def make_room(
    scratch: ScratchPaths, cells: Iterable[str], needed_bytes: Sequence[int]
) -> list[str]:
    """Remove what these cells left beside their code, the oldest first, until there is room.

    The cells of which it was removed.
    """
    if not checked_copy.lack_of_room(scratch.root, needed_bytes):
        return []
    folders = [cell for cell in cells if scratch.beside(cell).is_dir()]
    removed = []
    for cell in sorted(folders, key=lambda cell: scratch.beside(cell).stat().st_mtime):
        if not checked_copy.lack_of_room(scratch.root, needed_bytes):
            break
        # With a disk mounted in it, or another user's files, it stays.
        with contextlib.suppress(OSError):
            regular_file.remove(scratch.beside(cell))
            removed.append(cell)
    return removed


def rename(source: Path, target: Path) -> None:
    """Whoever may write there. Raises OSError, also for another disk."""
    try:
        source.rename(target)
    except PermissionError:
        # Into another folder only one's own, writable folders may be moved.
        source.chmod(0o700)
        source.rename(target)


def free(target: Path) -> Path:
    """A name that nothing has: what is there already was written earlier by the same attempt, or
    before it.
    """
    if not os.path.lexists(target):
        return target
    names = (target.with_name(f"{target.name}.{number}") for number in itertools.count(1))
    return next(path for path in names if not os.path.lexists(path))
