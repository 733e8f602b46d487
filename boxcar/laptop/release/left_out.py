"""What ignore rules keep from being shipped, with sizes: data that a script needs vanish so."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from boxcar.laptop.release import code_files
from boxcar.shared.record import dataclass

# Of a data set with millions of files so many say where it lies.
MOST_FILES_LOOKED_AT = 40_000
MOST_ROWS = 50
_NAMED_DEPTH = 2


@dataclass(frozen=True)
class LeftOut:
    """`name` is a file, or all of one kind in a folder, `data/*.bin`; `rule` is the one that keeps
    it, as `.gitignore:3 (*.bin)`.

    `is_more`: not all of its files were counted.
    """

    name: str
    size_bytes: int
    rule: str
    is_more: bool = False


def find_left_out(code_dir: Path, shipped: frozenset[str]) -> list[LeftOut]:
    """By folder and kind of file, the largest MOST_ROWS first. `shipped` are the files that travel.

    Raises InputError.
    """
    folder = Path(os.path.realpath(code_dir))
    files = list(itertools.islice(_files(folder, shipped), MOST_FILES_LOOKED_AT))
    is_more = len(files) == MOST_FILES_LOOKED_AT
    sizes: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for name, size_bytes in files:
        place = _place(name)
        sizes[place] = sizes.get(place, 0) + size_bytes
        firsts.setdefault(place, name)
    largest = sorted(sizes, key=lambda place: (-sizes[place], place))[:MOST_ROWS]
    # Each asks git once.
    rules = {place: code_files.left_out_by(folder, firsts[place]) for place in largest}
    return [LeftOut(p, sizes[p], rules[p], is_more) for p in largest if rules[p]]


def _place(name: str) -> str:
    """Where a file is, two levels deep, and of which kind; a file at the top by itself."""
    folders = name.split("/")[:-1][:_NAMED_DEPTH]
    return "/".join([*folders, f"*{Path(name).suffix}"]) if folders else name


def _files(folder: Path, shipped: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Each regular file that stays, with its size; Boxcar's own, caches and repositories apart."""
    is_never = code_files.never_shipped(folder)
    for at, folders, names in os.walk(folder):
        here = Path(at).relative_to(folder)
        folders[:] = sorted(name for name in folders if not is_never((here / name).as_posix()))
        for name in sorted(names):
            path, relative = Path(at, name), (here / name).as_posix()
            if relative in shipped or is_never(relative):
                continue
            if path.is_file() and not path.is_symlink():
                yield relative, path.stat().st_size
