"""The gap between two cells: from the last line of one's script to the first line of the next.

Plain Python cells, so that the dispatcher's own share shows. Beside it a bash `while read` that
runs the same script; rounds of both take turns, and one agent runs all of ours.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.row import Row
from bench.tiny_run import TinyRun
from boxcar.shared import timestamp
from boxcar.shared.environment import clean_environment
from boxcar.shared.files import attempt

ROUNDS, CELLS = 4, 8
_PEER = "bash while read"


def measure(folder: Path) -> list[Row]:
    ours: list[float] = []
    theirs: list[float] = []
    parts: list[dict[str, float]] = []
    with TinyRun(folder) as run:
        for number in range(ROUNDS):
            cells = [f"r{number}c{at}" for at in range(CELLS)]
            ours += gaps_ms(_of_boxcar(run, cells))
            theirs += gaps_ms(_of_bash(run, cells))
            parts += [_parts_ms(run, *pair) for pair in itertools.pairwise(cells)]
    return [
        _row("between two cells, median", statistics.median, ours, theirs),
        _row("between two cells, least", min, ours, theirs),
        *_median_parts(parts),
    ]


def gaps_ms(spans: Sequence[dict[str, float]]) -> list[float]:
    return [
        1000 * (after["began"] - before["ended"]) for before, after in itertools.pairwise(spans)
    ]


def _row(
    what: str, of: Callable[[list[float]], float], ours: list[float], theirs: list[float]
) -> Row:
    return Row(what, of(ours), "ms", of(theirs), _PEER)


def _of_boxcar(run: TinyRun, cells: Sequence[str]) -> list[dict[str, float]]:
    run.append(cells)
    run.wait_for(cells)
    return [run.result(cell) for cell in cells]


def _of_bash(run: TinyRun, cells: Sequence[str]) -> list[dict[str, float]]:
    """The same script, started by what people have today."""
    loop = 'while read -r out; do "$1" -u "$2" "$out" </dev/null; done'
    outs = [run.folder / "bash" / cell for cell in cells]
    for out in outs:
        out.mkdir(parents=True)
    subprocess.run(
        ["bash", "-c", loop, "bash", sys.executable, str(run.script)],
        input="".join(f"{out}\n" for out in outs),
        text=True,
        check=True,
        env=clean_environment(os.environ),
    )
    return [json.loads((out / "m.json").read_text()) for out in outs]


def _parts_ms(run: TinyRun, before: str, after: str) -> dict[str, float]:
    """Where one gap went, by what records and events say of the time, to the millisecond."""
    done = attempt.read_done(run.done(before))
    running = attempt.read_done(run.done(after))
    assert done
    assert running
    said = {(e.type, e.cell): timestamp.parse_utc(e.at).timestamp() for e in run.events()}
    marks = [
        ("script's end", run.result(before)["ended"]),
        ("the wrapper sees the launcher's end", timestamp.parse_utc(done.ended_at).timestamp()),
        ("the agent has said it", said["cell.succeeded", before]),
        ("the next cell is started", said["cell.started", after]),
        ("its wrapper runs", timestamp.parse_utc(running.started_at).timestamp()),
        ("its script's first line", run.result(after)["began"]),
    ]
    return {name: 1000 * (at - then) for (_, then), (name, at) in itertools.pairwise(marks)}


def _median_parts(parts: Sequence[dict[str, Any]]) -> Iterator[Row]:
    for name in parts[0]:
        yield Row(f"of it until {name}", statistics.median(part[name] for part in parts), "ms")
