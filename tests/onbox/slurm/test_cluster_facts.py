from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from pretended import Pretended

from boxcar.shared.disk import lock
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.agent import held
from onbox.slurm import cluster_facts, commands

SCONTROL = """#!/bin/bash
case "$2" in
  config) printf 'MaxArraySize            = 1001\\nSLURM_VERSION           = 22.05.8\\n' ;;
  partition)
    echo 'PartitionName=gpu Default=YES MaxTime=01:00:00 State=UP Nodes=n[1-2] DefaultTime=NONE'
    echo 'PartitionName=long Default=NO MaxTime=UNLIMITED State=UP Nodes=n3' ;;
esac
"""
ASKED = cluster_asks.SlurmAudit("~/c/credentials.json", {"run_slurm.sh": ("--time=60",)})


@pytest.fixture
def cluster(slurm: Pretended, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    scontrol = slurm.folder / "bin" / "scontrol"
    scontrol.write_text(SCONTROL)
    scontrol.chmod(0o755)
    monkeypatch.setenv("HOME", str(slurm.folder))
    return slurm


def without_flock(number: int, folder: Path) -> object:
    there = fcntl.flock

    def flock(fd: int, how: int) -> None:
        if Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(folder):
            raise OSError(number, os.strerror(number))
        there(fd, how)

    return flock


def test_the_facts_are_what_scontrol_and_sbatch_say(cluster):
    found = cluster_facts.answer(ASKED, cluster.run)
    assert (found.version, found.max_array_size, found.defaults) == ("22.05.8", 1001, ("gpu",))
    assert found.partitions["long"]["MaxTime"] == "UNLIMITED"
    assert (found.refusals, found.tier_problem, found.credentials_problem) == ({}, None, None)
    [call] = cluster.calls("sbatch")
    assert "--test-only" in call and "--time=60" in call


def test_what_sbatch_refuses_is_told_for_its_script(cluster):
    cluster.mood("sbatch", "refuses")
    found = cluster_facts.answer(ASKED, cluster.run)
    assert "invalid partition" in found.refusals["run_slurm.sh"]


@pytest.mark.parametrize(
    ("sinfo", "is_refused"),
    [("echo n1", True), ("exit 1", True), (None, True), ("echo", False)],
    ids=["a node answers", "sinfo is silent", "there is no sinfo", "no node answers"],
)
def test_that_no_node_has_what_is_asked_for_counts_only_while_one_answers(
    cluster, sinfo, is_refused, monkeypatch
):
    """As in a maintenance: sbatch takes the job then, and it waits."""
    monkeypatch.setattr(commands, "_USUAL", ())
    monkeypatch.setenv("PATH", f"{cluster.folder / 'bin'}:/bin")
    if sinfo:
        program = cluster.folder / "bin" / "sinfo"
        program.write_text(f'#!/bin/sh\necho sinfo "$@" >>{cluster.folder}/calls\n{sinfo}\n')
        program.chmod(0o755)
    cluster.mood("sbatch", "empty")
    asked = cluster_asks.SlurmAudit("~/c", {"run_slurm.sh": ("--partition=gpu",)})
    assert bool(cluster_facts.answer(asked, cluster.run).refusals) is is_refused
    assert all("--partition=gpu" in call for call in cluster.calls("sinfo"))


def test_a_silent_slurm_is_not_judged(cluster):
    (cluster.folder / "bin" / "scontrol").write_text("#!/bin/sh\necho no >&2; exit 1\n")
    with pytest.raises(TemporaryError, match="Slurm does not answer"):
        cluster_facts.answer(ASKED, cluster.run)


def test_a_tier_that_is_not_mounted_is_said(cluster):
    elsewhere = RunOnBox("digits", str(cluster.folder / "gone"), "/data")
    found = cluster_facts.answer(ASKED, elsewhere)
    assert "is the file system mounted" in str(found.tier_problem)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_will_do_for_slurms_agents_and_no_others(
    cluster, tmp_path, monkeypatch, number
):
    monkeypatch.setattr(lock, "_MEMORY", tmp_path)
    monkeypatch.setattr(fcntl, "flock", without_flock(number, tmp_path / "tier"))
    assert cluster_facts.answer(ASKED, cluster.run).tier_problem is None
    path = tmp_path / "tier" / "queue_1.lock"
    path.parent.mkdir()
    with pytest.raises(InputError, match="has no file locks"):
        held.take_lock(path)
    fd = held.take_lock(path, is_alone=True)
    assert fd is not None
    os.close(fd)
