"""The cluster of these tests is a real one: what Boxcar relies on, as Slurm itself does it."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster, our_ports
from waiting import until


def test_an_array_runs_with_its_gpus_and_is_found_by_its_comment(
    slurm: Cluster, tmp_path: Path
) -> None:
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/sh\n#SBATCH --gres=gpu:1\necho "$CUDA_VISIBLE_DEVICES"\n')
    said = slurm.run(
        *("sbatch", "--parsable", "--array=0,2", "--comment=boxcar run=x", "--job-name=boxcar-x"),
        *(f"--output={tmp_path}/%a", str(script)),
    )
    job = said.strip()
    tasks = {f"{job}_0", f"{job}_2"}
    until(lambda: {slurm.jobs()[task] for task in tasks} == {"COMPLETED"}, slurm.jobs)
    assert {(tmp_path / index).read_text().strip() for index in "02"} <= {"0", "1"}
    found = slurm.run("squeue", "-h", "-r", "-t", "all", "-n", "boxcar-x", "-o", "%i|%K|%k")
    assert sorted(found.split("\n")[:2]) == [
        f"{job}_0|0|boxcar run=x",
        f"{job}_2|2|boxcar run=x",
    ]


def test_a_limit_that_is_too_long_is_taken_and_waits_for_ever(
    slurm: Cluster, tmp_path: Path
) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    job = slurm.run("sbatch", "--parsable", "--time=2:00:00", str(script)).strip()
    why = ("squeue", "-h", "-j", job, "-o", "%r")
    until(lambda: slurm.run(*why).strip() == "PartitionTimeLimit", lambda: slurm.run(*why))
    slurm.run("scancel", job)


def test_two_clusters_that_start_at_once_have_ports_of_their_own() -> None:
    with our_ports() as first, our_ports() as second:
        assert first != second
