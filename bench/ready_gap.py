"""From the last line of one training under torchrun until the next one is ready: torch imported,
the process group up and one all_reduce done. With one rank and with two, in turns with a bash loop.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import dispatchers
from bench.row import Row
from bench.tiny_run import TinyRun

ROUNDS, CELLS = 2, 4
RANKS = (1, 2)
_SCRIPT = """\
import json, os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.zeros(1))
ready = time.time()
time.sleep(1)
dist.destroy_process_group()
if os.environ["RANK"] == "0":
    with open(sys.argv[1] + "/m.json", "w") as file:
        json.dump({"ready": ready, "ended": time.time()}, file)
"""


def measure(folder: Path) -> list[Row]:
    return [row for ranks in RANKS for row in _of_world(folder / str(ranks), ranks)]


def _of_world(folder: Path, ranks: int) -> Iterator[Row]:
    folder.mkdir()
    ours: list[float] = []
    by_bash: list[float] = []
    job = {"launcher": "torchrun", "nproc_per_node": ranks}
    with TinyRun(folder, _SCRIPT, job) as run:
        for number in range(ROUNDS):
            cells = [f"turn{number}c{at}" for at in range(CELLS)]
            run.append(cells)
            run.wait_for(cells)
            ours += _gaps_s([run.result(cell) for cell in cells])
            outs = [folder / "bash" / cell for cell in cells]
            dispatchers.by_bash(dispatchers.torchrun(run.script, ranks), outs)
            by_bash += _gaps_s([json.loads((out / "m.json").read_text()) for out in outs])
    yield Row(
        *(f"until ready under torchrun, {ranks} rank{'s' * (ranks > 1)}", statistics.median(ours)),
        *("s", statistics.median(by_bash), dispatchers.BASH, min(ours), min(by_bash), 1.0),
    )


def _gaps_s(spans: list[Any]) -> list[float]:
    return [after["ready"] - before["ended"] for before, after in itertools.pairwise(spans)]
