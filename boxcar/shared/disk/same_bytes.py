"""Whether two files have the same bytes, of which never more than a piece is held: a journal of a
large run has hundreds of MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

_PIECE_BYTES = 1 << 18


def begins_with(path: Path, beginning: Path) -> bool:
    """Whether a file begins with all of another. Raises OSError."""
    with path.open("rb") as file, beginning.open("rb") as other:
        return _begins(file, other)


def has_same_bytes(path: Path, copy: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as file, copy.open("rb") as other:
        return _begins(file, other) and not file.read(1)


def _begins(file: BinaryIO, other: BinaryIO) -> bool:
    while piece := other.read(_PIECE_BYTES):
        if file.read(len(piece)) != piece:
            return False
    return True
