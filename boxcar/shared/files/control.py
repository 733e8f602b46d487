"""What a person wants of a queue's agent: run, drain or stop. The laptop writes it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

RUN = "run"
DRAIN = "drain"  # finish the running cell, then end
STOP = "stop"  # checkpoint, then end now


@dataclass(frozen=True)
class Control:
    FORMAT: ClassVar[str] = "control"
    VERSION: ClassVar[int] = 1

    want: str
    at: str
    extra: dict[str, Any] = field(default_factory=dict)


def wanted(path: Path) -> str:
    """`run` where nobody has asked for anything. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return RUN
    return codec.from_document(Control, data, str(path)).want
