"""How the gap between two cells grows: with 20,000 files of code, and with 10,000 cells behind it,
beside a run that has a hundred of the one and none of the other. In turns.

Each cell imports from the code, so that there is bytecode to be removed after it.
"""

from __future__ import annotations

import contextlib
import statistics
from pathlib import Path

from bench import agent, gap, growth, idle
from bench.row import Row
from bench.tiny_run import CODE_FILES, TinyRun

# With the wrapper's and the agent's own it is below what a release may have.
FILES = 19_900
BEHIND = 10_000
ROUNDS, CELLS = 3, 6
SMALL, MANY_FILES, LONG = "small", f"{FILES:,} files of code", f"{BEHIND:,} cells behind"


def measure(folder: Path) -> list[Row]:
    runs = _runs(folder)
    gaps_ms: dict[str, list[float]] = {name: [] for name in runs}
    appends_ms: dict[str, list[float]] = {name: [] for name in runs}
    with contextlib.ExitStack() as stack:
        for run in runs.values():
            stack.enter_context(run)
        for turn in range(ROUNDS):
            for name, run in runs.items():
                cells = [f"lasts{turn}c{at}" for at in range(CELLS)]
                gaps_ms[name] += gap.gaps_ms(gap.of_boxcar(run, cells))
                appends_ms[name].append(1000 * agent.append_s(run, f"noticed{turn}"))
        highest_mb = idle.highest_mb(runs[LONG].pid)
    return [
        *_rows(f"between two cells of {gap.LASTS_S} s", gaps_ms),
        *_rows("an appended line's start", appends_ms),
        Row(f"memory, highest, {LONG}", highest_mb, "MB", agent.LIMIT_MB, "limit"),
    ]


def _runs(folder: Path) -> dict[str, TinyRun]:
    # Behind its first line: to find a module among many takes the script's own time.
    text = (gap.SCRIPT % gap.LASTS_S).replace("import json", "import lib0.module_0, json")
    places = {name: folder / str(at) for at, name in enumerate((SMALL, MANY_FILES, LONG))}
    for place in places.values():
        place.mkdir()
    long = TinyRun(places[LONG], text, above=growth.queue(BEHIND))
    growth.publish(long.project, BEHIND)
    many_files = TinyRun(places[MANY_FILES], text, code_files=FILES)
    return {SMALL: TinyRun(places[SMALL], text), MANY_FILES: many_files, LONG: long}


def _rows(what: str, found_ms: dict[str, list[float]]) -> list[Row]:
    peer_ms, peer = found_ms[SMALL], f"{CODE_FILES} files, none behind"
    return [
        Row(
            *(f"{what}, {name}", statistics.median(ours_ms), "ms"),
            *(statistics.median(peer_ms), peer, min(ours_ms), min(peer_ms), 1.2),
        )
        for name, ours_ms in found_ms.items()
        if name != SMALL
    ]
