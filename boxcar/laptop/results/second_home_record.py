"""Which results came here from the second home, because box and tier were out of reach.

The tier has no manifest of these, so what is here is compared with what is written down here.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass

FILE = "second.json"


@dataclass(frozen=True)
class SecondHomeRecord:
    """`cells`: of each cell the digest of its manifest."""

    FORMAT: ClassVar[str] = "second"
    VERSION: ClassVar[int] = 1

    cells: dict[str, str]


def manifest_sha256(results: ResultPaths, cell: str) -> str | None:
    """None for a cell that did not come from there. Raises DamagedError, OSError."""
    return _read(results).get(cell)


def keep(results: ResultPaths, cell: str, sha256: str) -> None:
    cells = _read(results) | {cell: sha256}
    atomic.write_whole(_file(results), codec.to_document(SecondHomeRecord(cells)))


def _read(results: ResultPaths) -> dict[str, str]:
    path = _file(results)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    return codec.from_document(SecondHomeRecord, data, str(path)).cells


def _file(results: ResultPaths) -> Path:
    return results.root / FILE
