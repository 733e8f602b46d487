"""What ignore rules keep from being shipped, with sizes: data that a script needs vanish so."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.release.code_files import Snapshot, left_out_by, never_shipped
from boxcar.shared.cell.cell_name import NO_CONFIG, config_path, stored_names
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

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
    rules = {place: left_out_by(folder, firsts[place]) for place in largest}
    return [LeftOut(p, sizes[p], rules[p], is_more) for p in largest if rules[p]]


def _place(name: str) -> str:
    """Where a file is, two levels deep, and of which kind; a file at the top by itself."""
    folders = name.split("/")[:-1][:_NAMED_DEPTH]
    return "/".join([*folders, f"*{Path(name).suffix}"]) if folders else name


def _files(folder: Path, shipped: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Each regular file that stays, with its size; Boxcar's own, caches and repositories apart."""
    is_never = never_shipped(folder)
    for at, folders, names in os.walk(folder):
        here = Path(at).relative_to(folder)
        folders[:] = sorted(name for name in folders if not is_never((here / name).as_posix()))
        for name in sorted(names):
            path, relative = Path(at, name), (here / name).as_posix()
            if relative in shipped or is_never(relative):
                continue
            if path.is_file() and not path.is_symlink():
                yield relative, path.stat().st_size


# Which configs and linked folders would not travel with the code: only the box would miss them.


def not_shipped(plan: Plan, shipped: Snapshot) -> list[str]:
    """A sentence on each config, and on each folder of `links`, that an ignore file leaves out."""
    names = stored_names(file.path for file in shipped.files)
    empty = [
        _(
            "{name}: nothing in this folder is sent, so links cannot point there. Send it with "
            "the code, or read it below $BOXCAR_DATA_DIR",
            name=folder,
        )
        for folder in plan.links.values()
        if not any(file.path.startswith(f"{folder}/") for file in shipped.files)
    ]
    return [
        *empty,
        *_configs(plan, names),
    ]


def _configs(plan: Plan, names: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        _(
            "{cfg}: the config of {cell} would not be sent, because an ignore file leaves it out",
            cfg=cell.cfg,
            cell=cell.name,
        )
        for cell in plan.cells
        if cell.cfg != NO_CONFIG and config_path(cell.cfg) not in names
    ]
