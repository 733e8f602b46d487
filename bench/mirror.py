"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside one without.

Both run for over a minute: sooner no checkpoint is mirrored, and after a short cell the caches are
warmer. So there is one gap of each kind, and more with --long.
"""

from __future__ import annotations

from pathlib import Path

from bench.row import Row, of_samples
from bench.tiny_run import TinyRun

SIZE_BYTES = 1024**3
# Gaps of each kind.
SIZES = (1,)
LONG_SIZES = (4,)
_SCRIPT = f"""\
import glob, json, os, sys, time
out = sys.argv[1]
began = time.time()
size_mib = 0 if "after" in out else {SIZE_BYTES} >> 20 if "mirrored" in out else 1
if size_mib:
    block = os.urandom(1 << 20)
    with open(out + "/latest.pth", "wb") as file:
        for _ in range(size_mib):
            file.write(block)
    # Until the copy is under way; a small one is over before anybody sees it.
    cell = os.path.basename(os.path.dirname(out))
    wanted = "/resume/.*.part" if size_mib > 1 else "/resume/*.json"
    while not glob.glob(sys.argv[2] + "/boxcar/bench/cells/" + cell + wanted):
        time.sleep(0.02)
with open(out + "/m.json", "w") as file:
    json.dump({{"began": began, "ended": time.time()}}, file)
"""


def measure(folder: Path) -> list[Row]:
    tier = folder / ".boxcar/local/durable"
    job = {"resume": "latest.pth", "command": f"cell.py {{out}} {tier}"}
    gaps_s: dict[str, list[float]] = {"mirrored": [], "plain": []}
    with TinyRun(folder, _SCRIPT, job) as run:
        for turn in range(SIZES[0]):
            for kind, found_s in gaps_s.items():
                found_s.append(_gap_s(run, f"{kind}{turn}"))
    took_s = {"ours": gaps_s["mirrored"], "without one": gaps_s["plain"]}
    return [of_samples("gap while a 1 GiB mirror is under way", took_s, "without one", 1.0)]


def _gap_s(run: TinyRun, cell: str) -> float:
    """Between the end of a cell and the begin of the one after it."""
    cells = [cell, f"after-{cell}"]
    run.append(cells)
    run.wait_for(cells)
    before, after = (run.result(one) for one in cells)
    return float(after["began"]) - float(before["ended"])
