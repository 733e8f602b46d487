"""A checkpoint that a cell could perhaps not load: put aside while the next older one is tried.

It stays beside {out}, by the attempt that failed with it, and is put back where the older one
fails in the same way: then it was not the checkpoint. The cell's verification removes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.paths import ScratchPaths


def put_aside(scratch: ScratchPaths, cell: str, attempt: int, names: Iterable[str]) -> None:
    """Move what has these names in {out}, as far as it is there. Raises OSError."""
    for name in names:
        source, target = (
            paths.inside(scratch.out(cell), name),
            _folder(scratch, cell, attempt) / name,
        )
        if _is_there(source):
            atomic.make_folder(target.parent)
            source.rename(target)


def put_back(scratch: ScratchPaths, cell: str, attempt: int, depth: int) -> list[str]:
    """Move it back; the names, each of `depth` parts. Raises OSError.

    A name that the cell has used since stays the cell's.
    """
    folder, out = _folder(scratch, cell, attempt), scratch.out(cell)
    found = sorted(path.relative_to(folder) for path in folder.glob("/".join(["*"] * depth)))
    back = [name for name in found if not _is_there(out / name)]
    for name in back:
        atomic.make_folder((out / name).parent)
        (folder / name).rename(out / name)
    return [name.as_posix() for name in back]


def remove(scratch: ScratchPaths, cell: str) -> None:
    shutil.rmtree(scratch.unloaded(cell), ignore_errors=True)


def _folder(scratch: ScratchPaths, cell: str, attempt: int) -> Path:
    return scratch.unloaded(cell) / str(attempt)


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
