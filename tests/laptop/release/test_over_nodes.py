"""The start of a cell over several nodes: as agreed, clean for shellcheck, and run by bash.

After a wanted change:
    BOXCAR_GOLDEN=write .venv/bin/pytest tests/laptop/release/test_over_nodes.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from plans import make_plan

from boxcar.laptop.release.wrappers import render_run_one
from boxcar.shared.cell.said import SaidCell
from boxcar.shared.files.plan import Box, Rule
from onbox.cell import wrapper_words

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden_slurm" / "run_one_over_nodes.sh"
SAYS_ITS_WORDS = '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n'


def rendered(data_dir: str = "/scratch/me") -> str:
    plan = make_plan(
        run="digits",
        profile="slurm",
        boxes=(Box("a", data_dir, "~/.boxcar/credentials-digits.json"),),
        queues={"queue_1": "a"},
        agent_python=f"{data_dir}/python",
        training_python=f"{data_dir}/python",
        rules=(Rule("x", nodes=2),),
    )
    return render_run_one(plan, "", "onbox-1.pyz", "training-1.zip")


def started(folder: Path, nodes_of_job: int) -> subprocess.CompletedProcess[str]:
    """run_one.sh of a cell over two nodes, whose agent says its words instead of an attempt."""
    code = folder / "boxcar" / "digits" / "code" / "release"
    code.mkdir(parents=True)
    (folder / "release").mkdir()
    for name, text in (
        ("python", '#!/bin/sh\ncase "$*" in *socket*) echo 29999; exit ;; esac\n' + SAYS_ITS_WORDS),
        ("squeue", "#!/bin/sh\nprintf '7_3.batch\\n7_3.extern\\n7_3.0\\n'\n"),
        ("scancel", f'#!/bin/sh\necho "$@" >>{folder}/cancelled\n'),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "release" / "run_one.sh").write_text(rendered(str(folder)))
    what = SaidCell(("train.py",), {}, "torchrun", 4, None, str(code), nodes=2)
    words = wrapper_words.of_attempt("a", "x", 1, what, 4)
    job = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    job |= {"SLURM_JOB_NUM_NODES": str(nodes_of_job), "SLURM_CPUS_PER_TASK": "8"}
    return subprocess.run(
        ["bash", str(folder / "release" / "run_one.sh"), *words],
        env=job | {"SLURMD_NODENAME": "n4", "PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_reads_as_agreed_and_is_clean_for_shellcheck() -> None:
    made = rendered()
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        GOLDEN.write_text(made)
    assert GOLDEN.read_text() == made
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, GOLDEN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_srun_starts_a_torchrun_on_each_node_that_meet_at_this_one(tmp_path: Path) -> None:
    done = started(tmp_path, nodes_of_job=2)
    words = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    srun = words[words.index("srun") :]
    assert srun[1:8] == [
        *("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"),
        *("--export=ALL", "--mpi=none", "--cpus-per-task=8"),
    ]
    torchrun = srun[srun.index("torch.distributed.run") + 1 :]
    assert torchrun == [
        *("--nnodes", "2", "--nproc-per-node", "4", "--rdzv-backend", "c10d"),
        *("--rdzv-endpoint", f"{os.uname().nodename}:29999", "--rdzv-id", "7_3.x.1", "train.py"),
    ]
    assert "BOXCAR_NODES=2" in words


def test_steps_that_a_killed_srun_has_left_are_ended_and_nothing_else(tmp_path: Path) -> None:
    started(tmp_path, nodes_of_job=2)
    assert (tmp_path / "cancelled").read_text() == "7_3.0\n"


def test_a_job_with_fewer_nodes_says_what_to_do(tmp_path: Path) -> None:
    done = started(tmp_path, nodes_of_job=1)
    assert done.returncode == 2
    assert "x takes 2 nodes, and its job 7_3 has 1" in done.stderr
