from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks_at_work import RanksFailed, run_ranks
from waiting import LIMIT_S

from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig

ROOT = Path(__file__).parents[3]
IS_LINUX = sys.platform == "linux"
# Of gloo, since torch 2.8.
HAS_RECORDER = hasattr(torch._C._distributed_c10d, "_dump_fr_trace")

# `abort` of C lets go of Python's lock, as a thread of gloo's that throws has never held it.
ABORTED = """\
import ctypes, os, sys, threading, time
from pathlib import Path
from boxcar.training.hang import stall_watch
{before}
stacks = Path(sys.argv[1])
stall_watch.hold_aborts(stacks.open("w"))
assert not stall_watch.is_abort_held()
threading.Thread(target=ctypes.CDLL(None).abort, daemon=True).start()
while not (stall_watch.is_abort_held() and "in <module>" in stacks.read_text()):
    time.sleep(0.01)
os._exit(7)
"""


def run(stacks: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", ABORTED.format(before=before), str(stacks)]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


@pytest.mark.skipif(not IS_LINUX, reason="elsewhere an abort is not held")
@pytest.mark.parametrize("before", ["", "import faulthandler; faulthandler.enable()"])
def test_an_abort_is_held_and_its_stacks_are_printed(before: str, tmp_path: Path) -> None:
    """The process ends by itself, and not by the signal, once its stacks are all there."""
    done = run(tmp_path / "stacks", before)
    assert done.returncode == 7, done.stderr
    assert "Fatal Python error: Aborted" in (tmp_path / "stacks").read_text()


@pytest.mark.skipif(not IS_LINUX, reason="elsewhere an abort is not held")
def test_an_abort_that_nobody_reports_ends_the_process_all_the_same() -> None:
    code = (
        "import os, sys; from boxcar.training.hang import stall_watch as watch; "
        "watch.hold_aborts(sys.stderr); os.abort()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=LIMIT_S)
    assert done.returncode == -signal.SIGABRT


def give_another_size(folder: str) -> None:
    ranks.join(DistributedConfig(timeout_s=LIMIT_S))
    dist.all_reduce(torch.ones(4))
    dist.all_reduce(torch.ones(1 + 4 * dist.get_rank()))
    dist.barrier()


@pytest.mark.skipif(not IS_LINUX, reason="elsewhere an abort is not held")
def test_an_all_reduce_of_another_size_ends_with_a_report_that_names_the_ranks(
    tmp_path: Path,
) -> None:
    """gloo aborts the rank that gets more than it asked for, before a line of Python runs."""
    with pytest.raises(RanksFailed) as failed:
        run_ranks(2, give_another_size, str(tmp_path), env={"BOXCAR_OUT": str(tmp_path)})
    report = json.loads((tmp_path / "hang" / "report.json").read_text())
    log = "".join(failed.value.logs)
    assert "Aborted" in log
    if not HAS_RECORDER:
        assert report["kind"] == "one-rank-aborted"
        return
    assert report["kind"] == "collective-of-another-size"
    # Who is called last may see its connection close first, and end by that.
    assert 42 in failed.value.codes and set(failed.value.codes) <= {42, 1}
    assert "rank 0 called all_reduce of [1], rank 1 called all_reduce of [5]" in report["sentence"]
    assert "test_abort.py:" in report["line"]
