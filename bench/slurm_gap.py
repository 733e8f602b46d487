"""The gap between two plain cells beside Slurm: a job array of which one task runs at a time, on a
cluster of this machine as tests/slurm makes it, whose scheduler looks every 2 s.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import gap
from bench.row import Row
from bench.tiny_run import TinyRun

CELLS = 8
_TESTS = Path(__file__).parents[1] / "tests"
_TASK = 'exec "{python}" -u "{script}" "{folder}/$SLURM_ARRAY_TASK_ID"'


def measure(folder: Path) -> list[Row]:
    """Where Slurm is not installed, pytest's word for that is the reason of the line."""
    text = gap.SCRIPT % gap.LASTS_S
    # Its daemons' sockets have short paths.
    with tempfile.TemporaryDirectory(prefix="boxcar-bench-slurm-") as short:
        theirs = gap.gaps_ms(_by_slurm(Path(short), text))
    with TinyRun(folder, text) as run:
        cells = [f"lasts{at}" for at in range(CELLS)]
        ours = gap.gaps_ms(gap.of_boxcar(run, cells))
    medians = statistics.median(ours), "ms", statistics.median(theirs), "Slurm"
    return [Row(f"between two cells of {gap.LASTS_S} s", *medians, min(ours), min(theirs), 1.0)]


def _by_slurm(folder: Path, text: str) -> Sequence[Any]:
    """When each task's script began and ended, in their order."""
    sys.path[:0] = [str(_TESTS), str(_TESTS / "slurm")]
    from cluster import cluster  # type: ignore[import-not-found,unused-ignore]

    script, outs = folder / "cell.py", [folder / f"lasts/{at}" for at in range(CELLS)]
    script.write_text(text)
    for out in outs:
        out.mkdir(parents=True)
    task = _TASK.format(python=sys.executable, script=script, folder=folder / "lasts")
    with cluster(folder / "cluster") as one:
        words = (f"--array=0-{CELLS - 1}%1", "--output=/dev/null", f"--wrap={task}")
        one.run("sbatch", "--wait", *words)
    return [json.loads((out / "m.json").read_text()) for out in outs]
