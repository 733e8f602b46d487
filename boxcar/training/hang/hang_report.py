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
    rows = [f"  {named}: {_row(dump)}" for dump, named in zip(dumps, _named(dumps), strict=True)]
    tail = [f"  stacks of all ranks: {folder}/rank_*.json"] if folder else []
    return "\n".join([head, f"  {diagnosis.advice}", *rows, *tail])


def _named(dumps: Sequence[RankDump]) -> list[str]:
    """With its node where there are several."""
    is_over_nodes = len({dump.host for dump in dumps}) > 1
    return [f"rank {dump.rank}" + f" on {dump.host}" * is_over_nodes for dump in dumps]


def _row(dump: RankDump) -> str:
    state = dump.state if dump.state != "running" else f"waits: {dump.waits}"
    inside = f" in {dump.collective}" if dump.collective else ""
    error = f" ({one_line(dump.error)})" if dump.error else ""
    step = "" if dump.step is None else f"step {dump.step}, "
    return f"{step}{state}{inside} {at_line(dump)}{error}"
