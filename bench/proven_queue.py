"""A queue of trainings under torchrun, each of some 5 s from its start to its end with a checkpoint
of 500 MB, until the last one is copied and verified. Beside it a bash loop that does the same by
hand with torchrun, cp, sync and sha256sum, and with `--long` one that copies nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench import dispatchers
from bench.row import Row
from bench.tiny_run import TinyRun

# 20 cells are what the aim is set for. With fewer the last one counts for more: nothing runs beside
# its copy.
SIZES = (8,)
LONG_SIZES = (20,)
TURNS = 1
_SCRIPT = """\
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.zeros(1))
time.sleep(1)  # beside some 4 s for torch's start and end, and for the save
torch.save({"weights": torch.rand(125_000_000)}, sys.argv[1] + "/last.pth")
dist.destroy_process_group()
"""
# Each cell is on the durable disk, and was compared there, before the next one begins.
_LOOP = """\
set -e
tier=$1; shift
while read -r out; do
  "$@" "$out" </dev/null
  to=$tier/$(basename "$out"); mkdir -p "$to"
  cp "$out/last.pth" "$to/"; sync "$to/last.pth"
  here=$(sha256sum <"$out/last.pth"); there=$(sha256sum <"$to/last.pth")
  [ "$here" = "$there" ]
  rm "$out/last.pth"
done
"""
# What no dispatcher that starts them one after another is faster than.
_ALONE = """\
set -e
shift
while read -r out; do "$@" "$out" </dev/null; rm "$out/last.pth"; done
"""


def measure(folder: Path) -> list[Row]:
    return [row for count in SIZES for row in _of_size(folder, count)]


def _of_size(folder: Path, count: int) -> Iterator[Row]:
    loops = {"bash": _LOOP} | ({"alone": _ALONE} if count in LONG_SIZES else {})
    took: dict[str, list[float]] = {name: [] for name in ("ours", *loops)}
    job = {"launcher": "torchrun", "artifacts": ["last.pth"]}
    with TinyRun(folder, _SCRIPT, job) as run:
        for turn in range(TURNS):
            cells = [f"turn{turn}c{at}" for at in range(count)]
            began = time.monotonic()
            run.append(cells)
            run.wait_for(cells)
            took["ours"].append(time.monotonic() - began)
            words = [str(folder / "tier"), *dispatchers.torchrun(run.script, 1)]
            for name, loop in loops.items():
                outs = [folder / name / cell for cell in cells]
                began = time.monotonic()
                dispatchers.by_bash(words, outs, loop)
                took[name].append(time.monotonic() - began)
    what = f"{count} cells of 5 s with 500 MB, copied and verified"
    ours = statistics.median(took["ours"]), "s"
    yield Row(
        *(what, *ours, statistics.median(took["bash"]), "bash, torchrun, cp, sha256sum"),
        *(min(took["ours"]), min(took["bash"]), 0.62),
    )
    if "alone" in took:
        yield Row(
            *(what, *ours, statistics.median(took["alone"]), "bash, torchrun, nothing copied"),
            *(min(took["ours"]), min(took["alone"])),
        )
