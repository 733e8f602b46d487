"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside one without.

Each such cell runs for over a minute: sooner no checkpoint is mirrored.
"""

from __future__ import annotations

from pathlib import Path

from bench.row import Row
from bench.tiny_run import TinyRun

SIZE_BYTES = 1024**3
_SCRIPT = f"""\
import glob, json, os, sys, time
out = sys.argv[1]
began = time.time()
size_bytes = {SIZE_BYTES} if "mirrored" in out else 1
if "mirrored" in out or "plain" in out:
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
    with TinyRun(folder, _SCRIPT, job) as run:
        cells = ["mirrored", "after1", "plain", "after2"]
        run.append(cells)
        run.wait_for(cells)
        spans = [run.result(cell) for cell in cells]
    gaps_ms = [1000 * (spans[at + 1]["began"] - spans[at]["ended"]) for at in (0, 2)]
    what = "gap while a 1 GiB mirror is under way"
    return [Row(what, gaps_ms[0], "ms", gaps_ms[1], "without one")]
