"""What can change a cell's numbers, below {out}: the training writes it, people and reports read.

See boxcar.training.run_manifest, and docs/formats.md.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from boxcar.shared.record import dataclass

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
