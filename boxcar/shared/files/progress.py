"""A cell's progress, below {out}: JSON Lines, one object for each line that the script reports.

`step` is a whole number, `at` a time, all else is the script's own. The script writes the file and
does not fsync it: its last lines may be lost with the box, and a line may be no JSON.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any, ClassVar

from boxcar.shared.record import dataclass

# What can change a cell's numbers, below {out}: the training writes it, people and reports read.
#
# See boxcar.training.run_manifest, and docs/formats.md.


TRAINING_FILE = "training.json"


@dataclass(frozen=True)
class Start:
    """One process that trained the cell; `extra` holds the facts that it recorded."""

    at: str
    torch: str
    python: str
    world: int
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """The file; `extra` holds the newest value of each fact."""

    FORMAT: ClassVar[str] = "training"
    VERSION: ClassVar[int] = 1

    starts: tuple[Start, ...]
    extra: dict[str, Any] = field(default_factory=dict)


FILE = "progress.jsonl"


def to_line(record: dict[str, Any]) -> bytes:
    """Raises ValueError for a number that JSON does not have."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a surrogate pair is text in Python and in no file.
    return line.encode("utf-8", "replace")


def parse_line(line: bytes) -> dict[str, Any] | None:
    """None for a line that is no JSON object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
