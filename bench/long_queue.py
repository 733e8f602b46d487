"""An agent with 10,000 cells behind it beside one with none, in turns: the gap between two cells,
the start of an appended line, and memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench import agent, gap, growth
from bench.row import Row
from bench.tiny_run import TinyRun

BEHIND = 10_000
ROUNDS, CELLS = 4, 6


def measure(folder: Path) -> list[Row]:
    (folder / "short").mkdir()
    (folder / "long").mkdir()
    text = gap.SCRIPT % gap.LASTS_S
    short = TinyRun(folder / "short", text)
    long = TinyRun(folder / "long", text, above=growth.queue(BEHIND))
    growth.publish(long.project, BEHIND)
    gaps_ms: dict[TinyRun, list[float]] = {short: [], long: []}
    appends_ms: dict[TinyRun, list[float]] = {short: [], long: []}
    with short, long:
        for turn in range(ROUNDS):
            for run in (short, long):
                cells = [f"lasts{turn}c{at}" for at in range(CELLS)]
                gaps_ms[run] += gap.gaps_ms(gap.of_boxcar(run, cells))
                appends_ms[run].append(1000 * agent.append_s(run, f"noticed{turn}"))
        highest_mb = agent.highest_mb_of(long)
    what = f"{BEHIND:,} cells behind"
    return [
        _row(f"between two cells of {gap.LASTS_S} s, {what}", gaps_ms[long], gaps_ms[short]),
        _row(f"an appended line's start, {what}", appends_ms[long], appends_ms[short]),
        Row(f"memory, highest, {what}", highest_mb, "MB", agent.LIMIT_MB, "limit"),
    ]


def _row(what: str, long_ms: Sequence[float], short_ms: Sequence[float]) -> Row:
    medians = statistics.median(long_ms), "ms", statistics.median(short_ms)
    return Row(what, *medians, "none behind", min(long_ms), min(short_ms), 1.2)
