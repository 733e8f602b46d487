"""The batch script of a cluster: as agreed, clean for shellcheck, and run by bash without Slurm.

After a wanted change:
    BOXCAR_GOLDEN=write .venv/bin/pytest tests/laptop/release/test_golden_slurm.py
and read the difference.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from plans import make_plan
from waiting import until

from boxcar.laptop.project.profiles.slurm_options import SlurmOptions
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.laptop.release.wrappers import render_run_slurm

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden_slurm"
OPTIONS = SlurmOptions(
    partition="gpu",
    account="lab",
    time="1-00:00:00",
    gres="gpu:a100:1",
    cpus_per_task=8,
    mem="64G",
    constraint="a100|h100",
    extra=("--mail-type=END,FAIL",),
)
QUEUES = {0: "queue_1", 1: "queue_2"}
PER_CELL = OPTIONS.model_copy(update={"per": "cell"})
CELL_BY_CELL = "run_slurm_per_cell.sh"
CONTAINERS = {
    "run_slurm.sh": (),
    CELL_BY_CELL: (),
    "run_slurm_apptainer.sh": ("apptainer", "exec", "--nv", "/scratch/o'neil image.sif"),
}
# Stands for the agent: it says what it was given, and ends as `ends` says; on TERM as it was asked.
AGENT = """#!/usr/bin/env bash
echo "agent: $*"
trap 'echo "agent: TERM"; exit {on_term}' TERM
{then}
"""
WAITS = "touch {folder}/works; while :; do sleep 0.05; done"
SQUEUE = '#!/bin/sh\n[ -e {folder}/is_silent ] || echo "boxcar run=digits"\n'
SBATCH = """#!/bin/sh
env | grep -E "^(SLURM|BOXCAR_RES)" >{folder}/env
echo "$@" >{folder}/again
echo 8
"""
SCONTROL = '#!/bin/sh\necho "scontrol: $*"\nexit {code}\n'


def rendered(container: tuple[str, ...] = (), *, per: Literal["cell"] | None = None) -> str:
    plan = make_plan(run="digits", profile="slurm", grace_s=30.0)
    options, queues = (OPTIONS, QUEUES) if per is None else (PER_CELL, {1: "queue_2"})
    return render_run_slurm(plan, BatchJob("run_slurm.sh", options, queues), container)


@pytest.mark.parametrize("name", list(CONTAINERS))
def test_the_batch_script_reads_as_agreed(name: str) -> None:
    made = rendered(CONTAINERS[name], per="cell" if name == CELL_BY_CELL else None)
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        GOLDEN.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_text(made)
    assert (GOLDEN / name).read_text() == made


def test_the_batch_script_is_clean_for_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    scripts = [GOLDEN / name for name in CONTAINERS]
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    made = tmp_path / "boxcar" / "digits" / "releases" / "0a1b"
    made.mkdir(parents=True)
    (made / "run_slurm.sh").write_text(rendered())
    return made


def prepared(release: Path, *, then: str, on_term: int = 85, requeues: int = 0) -> list[str]:
    """The words of the script with an agent that does that, and a scontrol with that code."""
    agent = AGENT.format(on_term=on_term, then=then.format(folder=release))
    (release / "run_queue.sh").write_text(agent)
    bin_ = release / "bin"
    bin_.mkdir()
    (bin_ / "scontrol").write_text(SCONTROL.format(code=requeues))
    (bin_ / "scontrol").chmod(0o755)
    for name, text in (("squeue", SQUEUE), ("sbatch", SBATCH)):
        (bin_ / name).write_text(text.format(folder=release))
        (bin_ / name).chmod(0o755)
    # What Slurm would end: the script waits for it after a requeue.
    (bin_ / "sleep").write_text(f'#!/bin/sh\n[ "$1" = 600 ] || exec {shutil.which("sleep")} "$1"\n')
    (bin_ / "sleep").chmod(0o755)
    return ["bash", str(release / "run_slurm.sh"), str(release)]


def env(release: Path, index: str) -> dict[str, str]:
    path = f"{release}/bin:{os.environ['PATH']}"
    return {"PATH": path, "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": index}


def log(release: Path, queue: str) -> str:
    return (release.parents[1] / "slurm" / f"{queue}.log").read_text()


def test_each_task_runs_the_agent_of_its_own_queue_and_ends_as_it_did(release: Path) -> None:
    words = prepared(release, then="exit 3")
    words += ["queue_1", "4", "a", "queue_2", "2", "b"]
    done = subprocess.run(words, env=env(release, "1"), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (3, b"")
    said = log(release, "queue_2")
    assert "agent: queue_2 2 b\n" in said and "start 0 on" in said
    assert "scontrol" not in said


def test_an_index_without_a_queue_ends_before_anything_is_run(release: Path) -> None:
    words = prepared(release, then="exit 0")
    done = subprocess.run(words, env=env(release, "5"), capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no queue of the index 5" in done.stderr


@dataclass(frozen=True)
class End:
    """What the script is sent, how its agent ends then, and what scontrol answers."""

    signal: str
    on_term: int
    requeues: int
    is_asked: bool
    said: str


ENDS = [
    End("USR1", 85, 0, is_asked=True, said="queued again, because its time limit came"),
    End("USR1", 143, 0, is_asked=True, said="queued again, because its time limit came"),
    End("USR1", 85, 1, is_asked=True, said="submitted again as 8_0"),
    End("USR1", 85, 127, is_asked=True, said="submitted again as 8_0"),  # there is no scontrol
    End("USR1", 0, 0, is_asked=False, said="its agent ended with 0"),
    # What a person cancels must not come back; what is preempted Slurm itself starts again.
    End("TERM", 85, 0, is_asked=False, said="its agent ended with 85"),
]


@pytest.mark.parametrize("end", ENDS)
def test_only_a_time_limit_queues_the_own_task_again(release: Path, end: End) -> None:
    words = prepared(release, then=WAITS, on_term=end.on_term, requeues=end.requeues)
    script = subprocess.Popen(words, env=env(release, "0"))
    until((release / "works").exists, "the agent has begun")
    subprocess.run(["kill", f"-{end.signal}", str(script.pid)], check=True)
    assert script.wait() == end.on_term
    found = log(release, "queue_1")
    assert ("scontrol: requeue 7_0" in found) is end.is_asked
    assert end.said in found and "agent: TERM" in found


def test_what_a_killed_agent_has_left_of_its_own_job_is_ended_and_of_no_other(
    release: Path,
) -> None:
    left = "SLURM_JOB_ID={} setsid sleep 300 & echo $! >>{{folder}}/left"
    then = f"{left.format(71)}\n{left.format(7)}\nkill -KILL $$"
    about = env(release, "0") | {"SLURM_JOB_ID": "71"}
    done = subprocess.run(prepared(release, then=then), env=about, check=False)
    assert done.returncode == 137
    own, other = (int(pid) for pid in (release / "left").read_text().split())
    try:
        until(lambda: not is_alive(own), "what is the job's own has ended")
        assert is_alive(other)
    finally:
        os.kill(other, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_where_a_site_forbids_requeues_a_new_job_waits_for_the_end_of_this_one(
    release: Path,
) -> None:
    words = [*prepared(release, then=WAITS, requeues=1), "queue_1", "4", "a"]
    about = {"SLURM_RESTART_COUNT": "2", "SLURM_CONF": "/etc/x", "BOXCAR_RESUBMITS": "1"}
    script = subprocess.Popen(words, env=env(release, "0") | about)
    until((release / "works").exists, "the agent has begun")
    subprocess.run(["kill", "-USR1", str(script.pid)], check=True)
    script.wait()
    asked = (release / "again").read_text()
    assert "--array=0 --dependency=afterany:7_0 --comment=boxcar run=digits" in asked
    assert asked.endswith(f"{release}/run_slurm.sh {release} queue_1 4 a\n")
    given = (release / "env").read_text().split()
    assert sorted(given) == ["BOXCAR_RESUBMITS=2", "SLURM_CONF=/etc/x"]


def test_without_its_comment_nothing_is_submitted_that_nobody_would_find(release: Path) -> None:
    words = prepared(release, then=WAITS, requeues=1)
    (release / "is_silent").touch()
    script = subprocess.Popen(words, env=env(release, "0"))
    until((release / "works").exists, "the agent has begun")
    subprocess.run(["kill", "-USR1", str(script.pid)], check=True)
    script.wait()
    assert not (release / "again").exists()
    assert "was not queued again by Slurm" in log(release, "queue_1")


@pytest.mark.parametrize(
    ("code", "ends", "is_cancelled"),
    [(85, 0, False), (0, 0, True), (1, 1, True), (43, 43, True), (75, 75, False)],
)
def test_cell_by_cell_the_tasks_that_wait_go_on_until_the_queue_is_done(
    release: Path, code: int, ends: int, is_cancelled: bool
) -> None:
    (release / "run_slurm.sh").write_text(rendered(per="cell"))
    words = prepared(release, then=f'echo "one: $BOXCAR_ONE_CELL"; exit {code}')
    scancel = release / "bin" / "scancel"
    scancel.write_text('#!/bin/sh\necho "scancel: $*"\n')
    scancel.chmod(0o755)
    done = subprocess.run(words, env=env(release, "4"), check=False)
    said = log(release, "queue_2")
    assert done.returncode == ends and "one: 1" in said
    assert ("scancel: --state=PENDING 7" in said) is is_cancelled
