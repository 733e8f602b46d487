from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from pretended import RELEASE, Pretended

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease
from boxcar.shared.slurm.submitted import Submit
from boxcar.shared.wire import cluster_asks
from onbox.slurm import squeue


def test_of_all_jobs_only_those_that_name_this_run_on_this_tier_are_ours(slurm: Pretended) -> None:
    slurm.has("7|0|7_0|RUNNING|2026-11-22T10:00:00|n1|None")
    ours = (slurm.folder / "jobs").read_text()
    slurm.has("8|0|8_0|RUNNING|N/A|n1|None", run="other")
    others = (slurm.folder / "jobs").read_text()
    elsewhere = ours.replace("tier=", "tier=0").replace("7_0", "9_0")
    (slurm.folder / "jobs").write_text(f"{ours}{others}{elsewhere}5|0|5_0|RUNNING|N/A|n1|None|mine")
    [row] = squeue.rows(slurm.tier)
    assert (row.task, row.index, row.node, row.comment.release) == ("7_0", "0", "n1", RELEASE)


def test_all_queues_are_one_call_and_nobody_asks_twice_within_half_a_minute(
    slurm: Pretended,
) -> None:
    slurm.has("7|0|7_0|PENDING|N/A||Priority", "7|1|7_1|PENDING|N/A||Priority")
    first = squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run) == first
    assert len(first.tasks) == 2 and len(slurm.calls("squeue")) == 1
    slurm.later()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_who_is_to_start_an_agent_anew_believes_no_answer_of_a_moment_ago(slurm: Pretended) -> None:
    slurm.has("7|0|7_0|RUNNING|N/A|n1|None")
    squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(is_exact=True), slurm.run).tasks == ()
    assert (
        squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()
    )  # and it is known from then on


def test_an_answer_from_before_the_clock_was_set_back_is_no_fresh_one(slurm: Pretended) -> None:
    slurm.has("7|0|7_0|PENDING|N/A||Priority")
    ahead = timestamp.utc(datetime.now(timezone.utc) + timedelta(hours=1))
    kept = codec.to_document(replace(squeue.look_now(slurm.tier), at=ahead))
    atomic.write_whole(slurm.tier.slurm_seen, kept)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_once_an_agent_has_ended_its_job_is_not_said_to_run_for_half_a_minute_more(
    slurm: Pretended,
) -> None:
    token, at = "0" * 16, timestamp.utc_now()
    record = Submit(token, RELEASE, "run_slurm.sh", {"0": "queue_1"}, at, "login", 1, "1", job="7")
    atomic.make_folder(slurm.tier.slurm_submit(token).parent)
    atomic.write_whole(slurm.tier.slurm_submit(token), codec.to_document(record))
    slurm.has("7|0|7_0|RUNNING|N/A|n1|None")
    owner = Lease("queue_1", "7", "0", 0, "n1", at)
    leases = slurm.tier.slurm_leases("queue_1")
    atomic.make_folder(leases)
    atomic.write_whole(lease.path(leases, 1), codec.to_document(owner))
    for _ in range(2):
        assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks[0].has_nodes
    assert len(slurm.calls("squeue")) == 1
    over = replace(owner, ended_at=timestamp.utc_now())
    atomic.write_whole(lease.path(leases, 1), codec.to_document(over))
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_a_silent_slurm_is_a_problem_and_not_asked_again_at_once_either(slurm: Pretended) -> None:
    slurm.mood("squeue", "silent")
    seen = squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    assert seen.tasks == () and "Unable to contact slurm controller" in str(seen.problem)
    squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    assert len(slurm.calls("squeue")) == 1


def test_where_there_is_no_squeue_the_login_node_is_asked_for(
    slurm: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onbox.slurm.commands._USUAL", ())
    monkeypatch.setenv("PATH", str(slurm.folder))
    with pytest.raises(InputError, match="expected a login node of the cluster"):
        squeue.answer(cluster_asks.SlurmLook(), slurm.run)


def test_slurm_says_its_own_local_time(slurm: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        slurm.has("7|0|7_0|PENDING|2026-11-22T10:00:00||Priority")
        [row] = squeue.rows(slurm.tier)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert str(row.start_at).startswith("2026-11-22T02:00:00")


def test_a_shells_own_wishes_for_sbatch_reach_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "debug")
    monkeypatch.setenv("MY_SECRET", "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    import os

    found = squeue.commands.environment(os.environ)
    assert found["SLURM_CONF"] == "/etc/slurm.conf"
    assert not {"SBATCH_PARTITION", "MY_SECRET"} & set(found)
