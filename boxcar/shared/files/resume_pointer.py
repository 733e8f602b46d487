"""The mirrored checkpoint of a cell that runs: what another box would go on from.

The pointer is written last and names one file beside it; older files are removed after that. The
agent that runs the cell writes it, and whoever starts the cell next reads it.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared import paths
from boxcar.shared.files import codec
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.record import dataclass

FOLDER, _, FILE = paths.RESUME.rpartition("/")


@dataclass(frozen=True)
class Resume:
    """`file` lies beside the pointer; `path` is its name below {out}."""

    FORMAT: ClassVar[str] = "resume"
    VERSION: ClassVar[int] = 1

    cell: str
    attempt: int
    at: str
    path: str
    file: FileRecord
    # Whether `file` is a whole folder, packed: a sharded checkpoint.
    is_folder: bool = field(default=False, metadata=codec.LATER)
    # What the attempt was asked for, see shared/cell/said.py.
    saying: str | None = field(default=None, metadata=codec.LATER)
    # How long its copy took.
    seconds: float | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_resume_pointer(folder: Path) -> Resume | None:
    """The pointer in a cell's resume folder, or None where nothing was mirrored."""
    return read_file(folder / FILE)


def read_file(path: Path) -> Resume | None:
    """None where there is none. Raises DamagedError, OSError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Resume, data, str(path))
