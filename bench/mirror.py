"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside ones without.

Every cell of it runs for about a minute: sooner no checkpoint is mirrored. That minute passes for
all runs of a turn at once, which end one after the other: one that warms the caches and does not
count, then by turns one without a mirror and one whose copy is half way, and one without at the
end. Whichever comes later finds warmer caches, so each gap beside a mirror stands beside the mean
of its neighbours.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, of_samples
from bench.tiny_run import TinyRun

SIZE_BYTES = 1024**3
# Turns, of `_PAIRS` gaps of each kind.
SIZES = (1,)
LONG_SIZES = (3,)
_PAIRS = 4
# A copy begins a minute after its cell, and a gap without one is measured so long before.
_COPIED_AFTER_S, _BEFORE_COPY_S = 60.0, 3.0
# From the begin of a mirrored cell to the next: time for half a copy and a gap after it.
_APART_S = 10.0
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
        os.fsync(file.fileno())
    while not (is_half_way() if size_mib > 1 else os.path.exists(sys.argv[3])):
        time.sleep(0.02)
with open(out + "/m.json", "w") as file:
    json.dump({{"began": began, "ended": time.time()}}, file)
"""


def measure(folder: Path) -> list[Row]:
    pairs_s = [pair for turn in range(SIZES[0]) for pair in _turn_s(folder / str(turn))]
    mirrored_s, plain_s = ([pair[at] for pair in pairs_s] for at in (0, 1))
    took_s = {"ours": mirrored_s, "without one": plain_s}
    return [of_samples("gap while a 1 GiB mirror is half way", took_s, "without one", 1.0)]


def _turn_s(folder: Path) -> Iterator[tuple[float, float]]:
    """Of each mirror: the gap beside it, and the mean of the ones before and after."""
    with contextlib.ExitStack() as stack:
        warms, *plains = (
            stack.enter_context(_run(folder / f"plain{at}")) for at in range(_PAIRS + 2)
        )
        mirrored = [stack.enter_context(_run(folder / f"mirrored{at}")) for at in range(_PAIRS)]
        for run in (warms, *plains):
            run.append(["plain", "after"])
        begun = time.monotonic()
        for at, run in enumerate(mirrored):
            _sleep_until(begun + at * _APART_S)
            run.append(["mirrored", "after"])
        first_at = begun + _COPIED_AFTER_S - _BEFORE_COPY_S
        _plain_gap_s(warms, first_at - 1.0)
        before_s = _plain_gap_s(plains[0], first_at)
        for at, run in enumerate(mirrored):
            mirrored_s = _gap_s(run, "mirrored")
            after_s = _plain_gap_s(plains[at + 1], first_at + (at + 1) * _APART_S)
            yield mirrored_s, statistics.mean([before_s, after_s])
            before_s = after_s


def _run(folder: Path) -> TinyRun:
    folder.mkdir(parents=True)
    words = f"{{out}} {folder}/.boxcar/local/durable {folder}/go"
    return TinyRun(folder, _SCRIPT, {"resume": "latest.pth", "command": f"cell.py {words}"})


def _plain_gap_s(run: TinyRun, at_s: float) -> float:
    """`at_s`: when its cell is told to end, in the seconds of time.monotonic()."""
    _sleep_until(at_s)
    (run.folder / "go").touch()
    return _gap_s(run, "plain")


def _gap_s(run: TinyRun, cell: str) -> float:
    """Between the end of a cell and the begin of the one after it."""
    run.wait_for([cell, "after"])
    before, after = run.result(cell), run.result("after")
    return float(after["began"]) - float(before["ended"])


def _sleep_until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))
