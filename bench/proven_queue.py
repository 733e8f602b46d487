"""A queue of trainings under torchrun, each of 5 s with a checkpoint of 500 MB, until the last one
is copied and verified. Beside it a bash loop that does the same by hand: torchrun, cp, sync,
sha256sum.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench import dispatchers
from bench.row import Row
from bench.tiny_run import TinyRun

# 20 cells are what the aim is set for; four show the same within two minutes.
SIZES = (4,)
LONG_SIZES = (20,)
TURNS = 1
_SCRIPT = """\
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.zeros(1))
time.sleep(5)
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


def measure(folder: Path) -> list[Row]:
    return [_of_size(folder, count) for count in SIZES]


def _of_size(folder: Path, count: int) -> Row:
    took: dict[str, list[float]] = {"ours": [], "bash": []}
    job = {"launcher": "torchrun", "artifacts": ["last.pth"]}
    with TinyRun(folder, _SCRIPT, job) as run:
        for turn in range(TURNS):
            cells = [f"turn{turn}c{at}" for at in range(count)]
            began = time.monotonic()
            run.append(cells)
            run.wait_for(cells)
            took["ours"].append(time.monotonic() - began)
            words = [str(folder / "tier"), *dispatchers.torchrun(run.script, 1)]
            began = time.monotonic()
            dispatchers.by_bash(words, [folder / "outs" / cell for cell in cells], _LOOP)
            took["bash"].append(time.monotonic() - began)
    what = f"{count} cells of 5 s with 500 MB, copied and verified"
    return Row(
        *(what, statistics.median(took["ours"]), "s", statistics.median(took["bash"])),
        *("bash, torchrun, cp, sha256sum", min(took["ours"]), min(took["bash"]), 0.62),
    )
