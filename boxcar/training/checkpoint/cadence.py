"""When to save, by Young and Daly (shared/artifacts/cadence.py), in whole steps.

    cadence = Cadence(checkpointer)
    if cadence.is_due(state.step):
        checkpointer.save_async()

`cost` is what a save costs the training (the measured stall), `mtbf` the mean time between
interruptions, from the history of this cell. All ranks know the same numbers, which rank 0 told
them at the last save, so they agree without a collective of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from boxcar.shared.artifacts.cadence import PRIOR_S, window_s
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec

HISTORY = "history.json"
FIRST_STEPS = 10
"""The first save comes early: it says what a save costs, and whether it works at all."""
_TRUST = 10
"""An estimate from n steps is believed for at most ten times as many."""


@dataclass(frozen=True)
class History:
    """`history.json`: over all starts of this cell. Rank 0 writes it at each save."""

    FORMAT: ClassVar[str] = "history"
    VERSION: ClassVar[int] = 1

    starts: int = 0
    running_s: float = 0.0
    """From each start to its last save; what came after it is not known."""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def mtbf_s(self) -> float:
        """Running time over interruptions, where the prior counts as one more interruption."""
        return (PRIOR_S + self.running_s) / max(1, self.starts)


@dataclass(frozen=True)
class Pace:
    """What rank 0 measured, as all ranks know it. `steps` were timed, each of `step_s`."""

    step: int = 0
    stall_s: float = 0.0
    write_s: float = 0.0
    """What a thread did of the last save, or behind it, in seconds."""
    step_s: float = 0.0
    steps: int = 0
    mtbf_s: float = PRIOR_S


class Paced(Protocol):
    """What a Cadence asks: Checkpointer."""

    pace: Pace


class Cadence:
    """Says at which steps to save; the same on all ranks."""

    def __init__(self, checkpointer: Paced) -> None:
        self._checkpointer = checkpointer

    def is_due(self, step: int) -> bool:
        """Whether `step` steps are far enough beyond the last save. No collective."""
        pace = self._checkpointer.pace
        return step - pace.step >= steps_between(pace)


def steps_between(pace: Pace) -> int:
    """The window in whole steps, rounded down, at least one.

    Never so few that the next save waits for this one's thread, and no more than the estimate of
    a step's time can be trusted for.
    """
    if not pace.steps:
        return FIRST_STEPS
    wanted_s = max(window_s(pace.stall_s, pace.mtbf_s), pace.write_s)
    trusted = max(FIRST_STEPS, _TRUST * pace.steps)
    if pace.step_s * trusted <= wanted_s:
        return trusted
    return max(1, int(wanted_s / pace.step_s))


def read_history(folder: Path) -> History:
    """What is known of this cell's starts; one that cannot be read is as good as none."""
    path = folder / HISTORY
    try:
        return codec.from_document(History, path.read_bytes(), str(path))
    except (FileNotFoundError, DamagedError):
        return History()


def write_history(folder: Path, history: History) -> None:
    """Replace it whole."""
    atomic.write_whole(folder / HISTORY, codec.to_document(history))


def merged(history: History, saved: Mapping[str, Any] | None) -> History:
    """The longer of two: a checkpoint carries its own to a box that has no history.json.

    `history` counts the start that is under way already, `saved` does not.
    """
    if not saved or saved["starts"] < history.starts:
        return history
    return dataclasses.replace(history, starts=saved["starts"] + 1, running_s=saved["running_s"])
