"""The claim of a cell: created exclusively, so that no cell is ever run by two queues.

`move` replaces it by another, in one step: a cell that was claimed once is never free again.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# In the place of the cell: older agents made it before that was known, and a power cut took it.
# Its file's name says which cell's it is.
OF_NO_CELL = ""


@dataclass(frozen=True)
class Claim:
    FORMAT: ClassVar[str] = "claim"
    VERSION: ClassVar[int] = 2
    CHECKED_SINCE: ClassVar[int] = 2

    cell: str
    queue: str
    box: str
    at: str
    # The queue that it was taken from, by `move`.
    moved_from: str | None = field(default=None, metadata=codec.LATER)
    # What its line asked for, see shared/cell/saying.py.
    saying: str | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_claim(path: Path) -> Claim | None:
    """The claim, or None where the cell is free."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Claim, data, str(path))


def claim_of_another(path: Path, queue: str) -> Claim | None:
    """The claim, where the cell belongs to another queue. Raises DamagedError, OSError."""
    claim = read_claim(path)
    return claim if claim and claim.queue != queue else None
