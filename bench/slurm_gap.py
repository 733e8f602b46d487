"""The gap between two cells beside Slurm: a job array of which one task runs at a time, on a
cluster of this machine as tests/slurm makes it, whose scheduler looks every 2 s.

Plain cells, cells that import torch, and cells under torchrun, from the end of one to the moment
when the next is ready.
"""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import dispatchers, gap, ready_gap
from bench.row import Row, of_samples
from bench.tiny_run import TinyRun

CELLS, CELLS_OF_TORCH = 6, 3
_TESTS = Path(__file__).parents[1] / "tests"


def measure(folder: Path) -> list[Row]:
    """Where Slurm is not installed, pytest's word for that is the reason of the line."""
    text = gap.SCRIPT % gap.LASTS_S
    plain = f"between two cells of {gap.LASTS_S} s"
    return [
        *_plain(folder / "lasts", plain, text, CELLS),
        *_plain(folder / "torch", "until the next cell has torch", text, CELLS_OF_TORCH),
        *(_ready(folder / f"ranks{ranks}", ranks) for ranks in ready_gap.RANKS),
    ]


def _plain(folder: Path, what: str, text: str, count: int) -> Iterator[Row]:
    folder.mkdir()
    with TinyRun(folder, text) as run:
        words = dispatchers.python(run.script)
        theirs = gap.gaps_ms(_by_slurm(words, folder.name, count))
        ours = gap.gaps_ms(gap.of_boxcar(run, [f"{folder.name}{at}" for at in range(count)]))
    medians = statistics.median(ours), "ms", statistics.median(theirs), "Slurm"
    yield Row(what, *medians, min(ours), min(theirs), 1.0)


def _ready(folder: Path, ranks: int) -> Row:
    folder.mkdir()
    job = {"launcher": "torchrun", "nproc_per_node": ranks}
    with TinyRun(folder, ready_gap.SCRIPT, job) as run:
        words = dispatchers.torchrun(run.script, ranks)
        theirs = ready_gap.gaps_s(_by_slurm(words, "ready", CELLS_OF_TORCH))
        ours = ready_gap.gaps_s(gap.of_boxcar(run, [f"ready{at}" for at in range(CELLS_OF_TORCH)]))
    what = f"until ready under torchrun, {ranks} rank{'s' * (ranks > 1)}"
    return of_samples(what, {"ours": ours, "Slurm": theirs}, "Slurm", 1.0)


def _by_slurm(words: Sequence[str], kind: str, count: int) -> list[Any]:
    """What each task's script wrote, in their order; each gets a folder whose path has the kind."""
    sys.path[:0] = [str(_TESTS), str(_TESTS / "slurm")]
    from cluster import cluster  # type: ignore[import-not-found,unused-ignore]

    # The daemons' sockets have short paths.
    with tempfile.TemporaryDirectory(prefix="boxcar-bench-slurm-") as short:
        outs = [Path(short, kind, str(at)) for at in range(count)]
        for out in outs:
            out.mkdir(parents=True)
        task = f'exec {shlex.join(words)} "{outs[0].parent}/$SLURM_ARRAY_TASK_ID"'
        with cluster(Path(short, "cluster")) as one:
            array = f"--array=0-{count - 1}%1"
            one.run("sbatch", "--wait", array, "--output=/dev/null", f"--wrap={task}")
        return [json.loads((out / "m.json").read_text()) for out in outs]
