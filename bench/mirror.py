"""The gap after a cell whose live checkpoint is being mirrored as it ends, beside one without.

Both run for over a minute: sooner no checkpoint is mirrored, and after a short cell the caches are
warmer. That minute passes for both at once, and one ends after the other. So there is one gap of
each kind, and more with --long.
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
cell = os.path.basename(os.path.dirname(out))
size_mib = {{"mirrored": {SIZE_BYTES} >> 20, "plain": 1}}.get(cell, 0)
if size_mib:
    block = os.urandom(1 << 20)
    with open(out + "/latest.pth", "wb") as file:
        for _ in range(size_mib):
            file.write(block)
    # Until the copy is under way; a small one is over before anybody sees it.
    wanted = "/resume/.*.part" if size_mib > 1 else "/resume/*.json"
    while not glob.glob(sys.argv[2] + "/boxcar/bench/cells/" + cell + wanted):
        time.sleep(0.02)
    while size_mib == 1 and not os.path.exists(sys.argv[3]):
        time.sleep(0.02)
with open(out + "/m.json", "w") as file:
    json.dump({{"began": began, "ended": time.time()}}, file)
"""


def measure(folder: Path) -> list[Row]:
    turns_s = [_turn_s(folder / str(turn)) for turn in range(SIZES[0])]
    mirrored_s, plain_s = ([turn[at] for turn in turns_s] for at in (0, 1))
    took_s = {"ours": mirrored_s, "without one": plain_s}
    return [of_samples("gap while a 1 GiB mirror is under way", took_s, "without one", 1.0)]


def _turn_s(folder: Path) -> tuple[float, float]:
    with _run(folder / "mirrored") as mirrored, _run(folder / "plain") as plain:
        for run in (mirrored, plain):
            run.append([run.folder.name, "after"])
        gap_s = _gap_s(mirrored)
        (plain.folder / "go").touch()
        return gap_s, _gap_s(plain)


def _run(folder: Path) -> TinyRun:
    folder.mkdir(parents=True)
    words = f"{{out}} {folder}/.boxcar/local/durable {folder}/go"
    return TinyRun(folder, _SCRIPT, {"resume": "latest.pth", "command": f"cell.py {words}"})


def _gap_s(run: TinyRun) -> float:
    """Between the end of a cell and the begin of the one after it."""
    cells = [run.folder.name, "after"]
    run.wait_for(cells)
    before, after = (run.result(one) for one in cells)
    return float(after["began"]) - float(before["ended"])
