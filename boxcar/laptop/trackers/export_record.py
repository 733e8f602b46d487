"""`export.json` in the folder of an export: what lies there of each cell. Laptop only."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.laptop.trackers.whole_folder import PARTIAL
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

RECORD_FILE, RECORD_LOCK = "export.json", ".lock"


@dataclass(frozen=True)
class Kept:
    """A cell as it was exported: the digest of its content, and where it lies below the folder."""

    content: str
    where: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportRecord:
    FORMAT: ClassVar[str] = "export"
    VERSION: ClassVar[int] = 1

    to: str
    cells: dict[str, Kept] = field(default_factory=dict)  # by run/cell
    extra: dict[str, Any] = field(default_factory=dict)


def read_export_record(folder: Path, to: str) -> ExportRecord:
    """An empty one where nothing was exported yet. Raises DamagedError, and InputError for the
    folder of another tracker, or of somebody else.
    """
    path = folder / RECORD_FILE
    if not path.exists():
        if any(path.name not in (RECORD_LOCK, PARTIAL) for path in folder.iterdir()):
            raise InputError(f"{folder}: expected an empty folder, or one that export made")
        return ExportRecord(to)
    found = codec.from_document(ExportRecord, path.read_bytes(), str(path))
    if found.to != to:
        raise InputError(f"{folder}: holds an export to {found.to}: name another folder, --out")
    return found


def write_export_record(folder: Path, record: ExportRecord) -> None:
    atomic.write_whole(folder / RECORD_FILE, codec.to_document(record))
