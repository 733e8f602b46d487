"""The gap between two cells: from the last line of one's script to the first line of the next.

Plain Python cells, so that the dispatcher's own share shows: of cells that last a moment, of cells
that end at once, beside which the results of those before are still being proven, and of cells that
import torch, as trainings do. Rounds of all dispatchers take turns, and one agent runs all of ours.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import dispatchers
from bench.dispatchers import Dispatcher
from bench.row import Row, no_value
from bench.tiny_run import TinyRun
from boxcar.shared import timestamp
from boxcar.shared.files import attempt

ROUNDS, CELLS, CELLS_OF_TORCH = 3, 8, 3
LASTS_S = 0.3
SCRIPT = """\
import sys, time
if "torch" in sys.argv[1]:
    import torch
began = time.time()  # what it imports else is not the queue's
import json
time.sleep(0 if "short" in sys.argv[1] else %s)
with open(sys.argv[1] + "/m.json", "w") as file:
    json.dump({"began": began, "ended": time.time()}, file)
"""


def measure(folder: Path) -> list[Row]:
    peers, missing = dispatchers.found()
    with TinyRun(folder, SCRIPT % LASTS_S) as run:
        rows = [
            *_of_kind(run, "lasts", f"between two cells of {LASTS_S} s", peers),
            *_of_kind(run, "short", "between two cells that end at once", peers),
            *_of_kind(run, "torch", "until the next cell has torch", peers),
        ]
    return [*rows, *(no_value(f"gap of {name}", "is not installed") for name in missing)]


def _of_kind(run: TinyRun, kind: str, what: str, peers: dict[str, Dispatcher]) -> Iterator[Row]:
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in peers}
    count, to_reach = (CELLS_OF_TORCH, 1.05) if kind == "torch" else (CELLS, 5.0)
    parts: list[dict[str, float]] = []
    for number in range(ROUNDS):
        cells = [f"{kind}{number}c{at}" for at in range(count)]
        ours += gaps_ms(of_boxcar(run, cells))
        parts += [_parts_ms(run, *pair) for pair in itertools.pairwise(cells)]
        for name, dispatcher in peers.items():
            theirs[name] += gaps_ms(_of_peer(run, cells, name, dispatcher))
    for name, gaps in theirs.items():
        yield Row(
            *(what, statistics.median(ours), "ms", statistics.median(gaps), name),
            *(min(ours), min(gaps), to_reach if name == dispatchers.BASH else None),
        )
    yield from _median_parts(parts)


def gaps_ms(spans: Sequence[dict[str, float]]) -> list[float]:
    return [
        1000 * (after["began"] - before["ended"]) for before, after in itertools.pairwise(spans)
    ]


def of_boxcar(run: TinyRun, cells: Sequence[str]) -> list[dict[str, float]]:
    run.append(cells)
    run.wait_for(cells)
    return [run.result(cell) for cell in cells]


def _of_peer(
    run: TinyRun, cells: Sequence[str], name: str, dispatcher: Dispatcher
) -> list[dict[str, float]]:
    """The same script, started by another."""
    outs = [run.folder / name.replace(" ", "-") / cell for cell in cells]
    for out in outs:
        out.mkdir(parents=True)
    dispatcher(dispatchers.python(run.script), outs)
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
