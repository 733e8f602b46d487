"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside ones without.

Every cell of it runs for about a minute: sooner no checkpoint is mirrored. That minute passes for
four runs at once, which end one after the other: one that warms the caches and does not count, one
without a mirror, the one whose copy is half way, and one without again. Whichever comes later finds
warmer caches, so the one in the middle stands beside the mean of its neighbours.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from pathlib import Path

from bench.row import Row, of_samples
from bench.tiny_run import TinyRun

SIZE_BYTES = 1024**3
# Turns, of one gap of each kind.
SIZES = (1,)
LONG_SIZES = (4,)
# A copy begins a minute after its cell. Those of 1 MiB are through by then, as their cells start so
# much sooner; and two of these end before it, one so long after the other.
_SOONER_S, _WARM_AT_S, _APART_S = 3.0, 57.0, 1.4
_SCRIPT = f"""\
import time
began = time.time()
import glob, json, os, sys
out = sys.argv[1]
cell = os.path.basename(os.path.dirname(out))
size_mib = {{"mirrored": {SIZE_BYTES} >> 20, "plain": 1}}.get(cell, 0)
def is_half_way():
    parts = glob.glob(sys.argv[2] + "/boxcar/bench/cells/" + cell + "/resume/.*.part")
    return any(os.path.getsize(part) >= {SIZE_BYTES // 2} for part in parts)
if size_mib:
    block = os.urandom(1 << 20)
    with open(out + "/latest.pth", "wb") as file:
        for _ in range(size_mib):
            file.write(block)
    while not (is_half_way() if size_mib > 1 else os.path.exists(sys.argv[3])):
        time.sleep(0.02)
with open(out + "/m.json", "w") as file:
    json.dump({{"began": began, "ended": time.time()}}, file)
"""


def measure(folder: Path) -> list[Row]:
    turns_s = [_turn_s(folder / str(turn)) for turn in range(SIZES[0])]
    mirrored_s, plain_s = ([turn[at] for turn in turns_s] for at in (0, 1))
    took_s = {"ours": mirrored_s, "without one": plain_s}
    return [of_samples("gap while a 1 GiB mirror is half way", took_s, "without one", 1.0)]


def _turn_s(folder: Path) -> tuple[float, float]:
    """A gap beside a mirror, and the mean of the ones before and after it."""
    with contextlib.ExitStack() as stack:
        warms, before, after, mirrored = (
            stack.enter_context(_run(folder / name)) for name in ("warms", "b", "a", "mirrored")
        )
        for run in (warms, before, after):
            run.append(["plain", "after"])
        time.sleep(_SOONER_S)
        mirrored.append(["mirrored", "after"])
        at_s = time.monotonic() + _WARM_AT_S
        _plain_gap_s(warms, at_s)
        before_s = _plain_gap_s(before, at_s + _APART_S)
        mirrored_s = _gap_s(mirrored, "mirrored")
        return mirrored_s, statistics.mean([before_s, _plain_gap_s(after)])


def _run(folder: Path) -> TinyRun:
    folder.mkdir(parents=True)
    words = f"{{out}} {folder}/.boxcar/local/durable {folder}/go"
    return TinyRun(folder, _SCRIPT, {"resume": "latest.pth", "command": f"cell.py {words}"})


def _plain_gap_s(run: TinyRun, at_s: float = 0.0) -> float:
    """`at_s`: when its cell is told to end, in the seconds of time.monotonic()."""
    time.sleep(max(0.0, at_s - time.monotonic()))
    (run.folder / "go").touch()
    return _gap_s(run, "plain")


def _gap_s(run: TinyRun, cell: str) -> float:
    """Between the end of a cell and the begin of the one after it."""
    run.wait_for([cell, "after"])
    before, after = run.result(cell), run.result("after")
    return float(after["began"]) - float(before["ended"])
