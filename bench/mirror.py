"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside one without.

Each such cell runs for over a minute: sooner no checkpoint is mirrored. So there is one of each,
and more with --long.
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
size_bytes = {SIZE_BYTES} if "mirrored" in out else 1
if "after" not in out:
    block = os.urandom(1 << 20)
    with open(out + "/latest.pth", "wb") as file:
        for _ in range(max(1, size_bytes >> 20)):
            file.write(block[:size_bytes])
    # Until the copy is under way; a small one is over before anybody sees it.
    cell = os.path.basename(os.path.dirname(out))
    wanted = sys.argv[2] + "/boxcar/bench/cells/" + cell + "/resume/" + (".*.part" if size_bytes > 1 else "*.json")
    while not glob.glob(wanted):
        time.sleep(0.02)
with open(out + "/m.json", "w") as file:
    json.dump({{"began": began, "ended": time.time()}}, file)
"""  # noqa: E501


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
