"""Failures that are the same but for their cell: shown once, for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from boxcar.shared.files.plan import Cell

_TRACEBACK = "Traceback (most recent call last)"
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
_RANK = re.compile(r"^\[rank\d+\]:\s?")


def own_names(cells: Iterable[Cell]) -> re.Pattern[str]:
    """The words by which cells differ: their names, their configs, the values that they vary."""
    words = {word for cell in cells for word in _words(cell) if word}
    # The longest first: a name may be part of a path.
    spelled = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.-])(?:{spelled})(?![\w-])")


def _words(cell: Cell) -> tuple[str, ...]:
    cfg = PurePosixPath(cell.cfg)
    # The keys stay: a script that refuses one says of each cell the same.
    values = (word.partition("=")[2] if "=" in word else word for word in cell.overrides)
    return cell.name, cell.cfg, cfg.name, cfg.stem, *(v for v in values if not v.startswith("-"))


def log_essence(lines: Sequence[str], folder: Path, names: re.Pattern[str]) -> str:
    """The last traceback of a log's end, else its last line, without what is one cell's own.

    `folder` is the cell's; `names` are those of all cells that it is compared with.
    """
    plain = [_RANK.sub("", line).rstrip() for line in lines if line.strip()]
    begins = [at for at, line in enumerate(plain) if _TRACEBACK in line]
    text = "\n".join(plain[begins[-1] :] if begins else plain[-1:])
    return names.sub("{}", _ADDRESS.sub("0x", text.replace(str(folder), "{cell}")))
