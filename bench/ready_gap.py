"""From the last line of one training under torchrun until the next one is ready: torch imported,
the process group up and one all_reduce done. With one rank and with two, in turns with a bash loop.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import dispatchers
from bench.row import Row, no_value, of_samples
from bench.tiny_run import TinyRun

ROUNDS, CELLS = 2, 3
# Half a minute each: the import of torch is most of it, whoever starts it.
SIZES = (dispatchers.BASH,)
LONG_SIZES = (dispatchers.BASH, dispatchers.TSP, dispatchers.PARALLEL, dispatchers.HYPERQUEUE)
RANKS = (1, 2)
_WHAT = "until ready under torchrun"
SCRIPT = """\
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
    missing = dispatchers.found()[1]
    return [
        *(row for ranks in RANKS for row in _of_world(folder / str(ranks), ranks)),
        *(no_value(f"{_WHAT}, {name}", "is not installed") for name in SIZES if name in missing),
    ]


def _of_world(folder: Path, ranks: int) -> Iterator[Row]:
    folder.mkdir()
    ours: list[float] = []
    peers = {name: way for name, way in dispatchers.found()[0].items() if name in SIZES}
    theirs: dict[str, list[float]] = {name: [] for name in peers}
    job = {"launcher": "torchrun", "nproc_per_node": ranks}
    with TinyRun(folder, SCRIPT, job) as run:
        for number in range(ROUNDS):
            cells = [f"turn{number}c{at}" for at in range(CELLS)]
            run.append(cells)
            run.wait_for(cells)
            ours += gaps_s([run.result(cell) for cell in cells])
            for name, dispatcher in peers.items():
                outs = [folder / name.replace(" ", "-") / cell for cell in cells]
                for out in outs:
                    out.mkdir(parents=True)
                dispatcher(dispatchers.torchrun(run.script, ranks), outs)
                spans = [json.loads((out / "m.json").read_text()) for out in outs]
                theirs[name] += gaps_s(spans)
    for name, took_s in theirs.items():
        yield of_samples(
            f"{_WHAT}, {ranks} rank{'s' * (ranks > 1)}", {"ours": ours, name: took_s}, name, 1.05
        )


def gaps_s(spans: list[Any]) -> list[float]:
    return [after["ready"] - before["ended"] for before, after in itertools.pairwise(spans)]
