"""A line of the user's code, as a rank's dump tells it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.training.hang import source
from boxcar.training.hang.stacks import Frame


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's code, with what the source says around it (source.Around)."""

    file: str
    line: int
    function: str = ""
    text: str = ""
    loop: tuple[int, int] | None = None
    branch: tuple[int, str] | None = None
    ways_out: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def of_frame(frame: Frame) -> CodeLine:
    """A frame with what its source says."""
    around = source.around(frame.file, frame.line)
    return CodeLine(frame.file, frame.line, frame.function, *around)


def parse(fields: dict[str, Any]) -> CodeLine:
    """One that was written by this version or by a newer one, which may know more fields."""
    known = {field.name for field in dataclasses.fields(CodeLine)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name in known
    }
    return CodeLine(**values)
