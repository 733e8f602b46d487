"""What is held while a run works on this box: its agents' locks, its attempts' logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.wire.box_asks import AtWork


def of_agents(
    tier: DurablePaths, scratch: ScratchPaths, queues: Iterable[str]
) -> Iterator[tuple[Path, AtWork]]:
    """What is held while an agent runs, and while one is being started."""
    for queue in sorted({*queues, *scratch.started()}):
        for path in of_agent(tier, scratch, queue):
            yield path, AtWork(queue=queue)


def of_agent(tier: DurablePaths, scratch: ScratchPaths, queue: str) -> tuple[Path, Path]:
    return tier.lock(queue), scratch.agent_log(queue)


def of_attempts(scratch: ScratchPaths) -> Iterator[tuple[Path, AtWork]]:
    for folder in sorted(scratch.cells.glob("*/")):
        if CELL_NAME.fullmatch(folder.name) and scratch.log(folder.name).is_file():
            yield scratch.log(folder.name), AtWork(cell=folder.name)
