"""The report of a hang for a person: the sentence, what to do, and a line for each rank. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxcar.training.hang.diagnosis import Diagnosis
from boxcar.training.hang.phrases import at_line, one_line
from boxcar.training.hang.rank_dump import RankDump


def text(diagnosis: Diagnosis, dumps: Sequence[RankDump], folder: Path | None = None) -> str:
    """The report for a person: the sentence, what to do, and a line for each rank."""
    head = f"boxcar: {diagnosis.kind}: {diagnosis.sentence}"
    rows = [f"  rank {dump.rank}: {_row(dump)}" for dump in dumps]
    tail = [f"  stacks of all ranks: {folder}/rank_*.json"] if folder else []
    return "\n".join([head, f"  {diagnosis.advice}", *rows, *tail])


def _row(dump: RankDump) -> str:
    state = dump.state if dump.state != "running" else f"waits: {dump.waits}"
    inside = f" in {dump.collective}" if dump.collective else ""
    error = f" ({one_line(dump.error)})" if dump.error else ""
    return f"step {dump.step}, {state}{inside} {at_line(dump)}{error}"
