"""What a run shows while it is at work: the steps that it reports, and when it saves.

Looked at from outside, by the progress file and by the resume file's identity, so that nothing is
asked of the script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared.files import progress


@dataclass(frozen=True)
class Report:
    """One progress line, and when it was seen, in seconds after the start."""

    seconds: float
    line: dict[str, Any]

    @property
    def step(self) -> int:
        return int(self.line["step"])


@dataclass(frozen=True)
class Save:
    """A change of the resume file. `after_step`: what had been reported before it, if anything."""

    seconds: float
    after_step: int | None


@dataclass
class Seen:
    """All that one start of the cell has shown so far."""

    reports: list[Report] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)

    @property
    def last_step(self) -> int | None:
        return self.reports[-1].step if self.reports else None

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [report.line for report in self.reports]


class Observer:
    """Looks at one {out}; what lies there already when it is made is not counted."""

    def __init__(self, out: Path, resume: str) -> None:
        self.seen = Seen()
        self._progress, self._resume = out / progress.FILE, out / resume
        self._read_bytes = _size(self._progress)
        self._saved = _identity(self._resume)

    def look(self, seconds: float) -> Seen:
        """Note what is new. The save first: a report that is seen later may be younger."""
        saved = _identity(self._resume)
        if saved is not None and saved != self._saved:
            self.seen.saves.append(Save(seconds, self.seen.last_step))
            self._saved = saved
        for line in self._new_lines():
            self.seen.reports.append(Report(seconds, line))
        return self.seen

    def _new_lines(self) -> list[dict[str, Any]]:
        size = _size(self._progress)
        if size < self._read_bytes:  # the script began the file anew
            self._read_bytes = 0
        if size == self._read_bytes:
            return []
        with self._progress.open("rb") as file:
            file.seek(self._read_bytes)
            whole = file.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole) + 1 if whole else 0
        return [line for text in whole.splitlines() if (line := _parsed(text))]


def _parsed(text: bytes) -> dict[str, Any] | None:
    line = progress.parse_line(text)
    return line if line and type(line.get("step")) is int else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
