"""What a run shows while it is at work: the steps that it reports, and when it saves.

Looked at from outside, by the progress file and by what `resume` means, so that nothing is asked of
the script.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.seen_checkpoint import Seen as Checkpoint
from boxcar.shared.files import progress

# A rehearsal is over before a folder without an index could be a minute old.
_A_MINUTE_LATER_NS = sys.maxsize


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
    """A new checkpoint, or a change of it. `after_step`: the last step reported before, if any."""

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
        self._progress, self._out, self._resume = out / progress.FILE, out, resume
        self._read_bytes = _size(self._progress)
        self._saved = self._newest()

    def look(self, seconds: float) -> Seen:
        """Note what is new. The save first: a report that is seen later may be younger."""
        saved = self._newest()
        if saved is not None and saved != self._saved:
            self.seen.saves.append(Save(seconds, self.seen.last_step))
            self._saved = saved
        for line in self._new_lines():
            self.seen.reports.append(Report(seconds, line))
        return self.seen

    def _newest(self) -> Checkpoint | None:
        """The newest that is not half written, as far as one can see."""
        with contextlib.suppress(OSError):  # a link out of {out}, or a file that is replaced now
            found = resume_match.find_checkpoints(self._out, self._resume)
            return next((seen for seen in found if seen.is_whole(_A_MINUTE_LATER_NS)), None)
        return None

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
