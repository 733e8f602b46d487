"""The gap between two cells of a release of 20,000 files beside that of one of 100, in turns.

Each cell imports from the code, so that there is bytecode to be removed after it.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from bench import gap
from bench.row import Row
from bench.tiny_run import CODE_FILES, TinyRun

# With the wrapper's and the agent's own it is below what a release may have.
MANY = 19_900
ROUNDS, CELLS = 4, 6


def measure(folder: Path) -> list[Row]:
    text = "import lib0.module_0\n" + gap.SCRIPT % gap.LASTS_S
    few_in, many_in = folder / "few", folder / "many"
    for made in (few_in, many_in):
        made.mkdir()
    ours: dict[int, list[float]] = {CODE_FILES: [], MANY: []}
    with TinyRun(few_in, text) as few, TinyRun(many_in, text, code_files=MANY) as many:
        for number in range(ROUNDS):
            cells = [f"lasts{number}c{at}" for at in range(CELLS)]
            for run, files in ((few, CODE_FILES), (many, MANY)):
                ours[files] += gap.gaps_ms(gap.of_boxcar(run, cells))
    medians = statistics.median(ours[MANY]), "ms", statistics.median(ours[CODE_FILES])
    least = min(ours[MANY]), min(ours[CODE_FILES])
    what = f"between two cells of {gap.LASTS_S} s, {MANY:,} files of code"
    return [Row(what, *medians, f"{CODE_FILES} files", *least, 1.2)]
