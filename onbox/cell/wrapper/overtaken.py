"""Whether an attempt that is about to start was overtaken: by a later one, or by a result."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared.files.attempt import read_running
from boxcar.shared.paths import DurablePaths
from onbox.cell import published
from onbox.cell.wrapper.places import Durable, Scratch


def is_overtaken(scratch: Scratch, durable: Durable, cell: str, number: int) -> bool:
    """Raises DamagedError."""
    if published.stands(DurablePaths(Path(durable.durable_dir), durable.run), cell):
        return True
    running = read_running(Path(scratch.running(cell)))
    return running is not None and running.attempt > number
