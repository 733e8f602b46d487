from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pretended import RELEASE, Pretended

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease
from boxcar.shared.slurm.submitted import Submit
from boxcar.shared.wire import cluster_asks
from onbox.slurm import ended, in_vain, ownership, squeue, submit
from onbox.slurm.ownership import Owned


def test_of_all_jobs_only_those_that_name_this_run_on_this_tier_are_ours(slurm):
    slurm.has("7|0|7_0|RUNNING|2026-11-22T10:00:00|n1|None")
    ours = (slurm.folder / "jobs").read_text()
    slurm.has("8|0|8_0|RUNNING|N/A|n1|None", run="other")
    others = (slurm.folder / "jobs").read_text()
    elsewhere = ours.replace("tier=", "tier=0").replace("7_0", "9_0")
    (slurm.folder / "jobs").write_text(f"{ours}{others}{elsewhere}5|0|5_0|RUNNING|N/A|n1|None|mine")
    [row] = squeue.rows(slurm.tier)
    assert (row.task, row.index, row.node, row.comment.release) == ("7_0", "0", "n1", RELEASE)


def test_all_queues_are_one_call_and_nobody_asks_twice_within_half_a_minute(slurm):
    slurm.has("7|0|7_0|PENDING|N/A||Priority", "7|1|7_1|PENDING|N/A||Priority")
    first = squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run) == first
    assert len(first.tasks) == 2 and len(slurm.calls("squeue")) == 1
    slurm.later()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_who_is_to_start_an_agent_anew_believes_no_answer_of_a_moment_ago(slurm):
    slurm.has("7|0|7_0|RUNNING|N/A|n1|None")
    squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(is_exact=True), slurm.run).tasks == ()
    assert (
        squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()
    )  # and it is known from then on


def test_an_answer_from_before_the_clock_was_set_back_is_no_fresh_one(slurm):
    slurm.has("7|0|7_0|PENDING|N/A||Priority")
    ahead = timestamp.utc(datetime.now(timezone.utc) + timedelta(hours=1))
    kept = codec.to_document(replace(squeue.look_now(slurm.tier), at=ahead))
    atomic.write_whole(slurm.tier.slurm_seen, kept)
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_once_an_agent_has_ended_its_job_is_not_said_to_run_for_half_a_minute_more(slurm):
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


def test_an_agent_that_was_through_within_half_a_minute_of_its_submit_is_not_said_to_wait(slurm):
    token, at = "0" * 16, timestamp.utc_now()
    record = Submit(token, RELEASE, "run_slurm.sh", {"0": "queue_1"}, at, "login", 1, "1", job="7")
    atomic.make_folder(slurm.tier.slurm_submit(token).parent)
    atomic.write_whole(slurm.tier.slurm_submit(token), codec.to_document(record))
    leases = slurm.tier.slurm_leases("queue_1")
    atomic.make_folder(leases)
    before = Lease("queue_1", "6", "0", 0, "n1", at, ended_at=at)
    atomic.write_whole(lease.path(leases, 1), codec.to_document(before))
    slurm.has("7|0|7_0|PENDING|N/A||Priority")
    for _ in range(2):
        assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks[0].waits
    assert len(slurm.calls("squeue")) == 1
    through = Lease("queue_1", "7", "0", 0, "n1", at, ended_at=timestamp.utc_now())
    atomic.write_whole(lease.path(leases, 2), codec.to_document(through))
    slurm.has()
    assert squeue.answer(cluster_asks.SlurmLook(), slurm.run).tasks == ()


def test_a_silent_slurm_is_a_problem_and_not_asked_again_at_once_either(slurm):
    slurm.mood("squeue", "silent")
    seen = squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    assert seen.tasks == () and "Unable to contact slurm controller" in str(seen.problem)
    squeue.answer(cluster_asks.SlurmLook(), slurm.run)
    assert len(slurm.calls("squeue")) == 1


def test_where_there_is_no_squeue_the_login_node_is_asked_for(slurm, monkeypatch):
    monkeypatch.setattr("onbox.slurm.commands._USUAL", ())
    monkeypatch.setenv("PATH", str(slurm.folder))
    with pytest.raises(InputError, match="expected a login node of the cluster"):
        squeue.answer(cluster_asks.SlurmLook(), slurm.run)


def test_slurm_says_its_own_local_time(slurm, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        slurm.has("7|0|7_0|PENDING|2026-11-22T10:00:00||Priority")
        [row] = squeue.rows(slurm.tier)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert str(row.start_at).startswith("2026-11-22T02:00:00")


def test_a_shells_own_wishes_for_sbatch_reach_no_job(monkeypatch):
    monkeypatch.setenv("SBATCH_PARTITION", "debug")
    monkeypatch.setenv("MY_SECRET", "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    import os

    found = squeue.commands.environment(os.environ)
    assert found["SLURM_CONF"] == "/etc/slurm.conf"
    assert not {"SBATCH_PARTITION", "MY_SECRET"} & set(found)


# --- whose jobs they are


QUEUE = "queue_1"


def of_job(number: int, restarts: int = 0) -> dict[str, str]:
    ids = {"SLURM_ARRAY_JOB_ID": str(number), "SLURM_ARRAY_TASK_ID": "0"}
    return ids | {"SLURM_JOB_ID": str(number), "SLURM_RESTART_COUNT": str(restarts)}


def take(slurm: Pretended, number: int, restarts: int = 0) -> Owned:
    return ownership.take(slurm.tier, QUEUE, of_job(number, restarts), patience_s=0)


@pytest.fixture
def seven(slurm: Pretended) -> Owned:
    """The queue is that of 7_0, which runs."""
    slurm.has("7|0|7_0|RUNNING|N/A|n1|None", "8|0|8_0|RUNNING|N/A|n2|None")
    return take(slurm, 7)


def test_a_running_jobs_queue_is_left_alone_also_where_locks_keep_nobody_out(slurm, seven):
    with pytest.raises(TemporaryError, match=r"7_0 on .*; it was left alone"):
        take(slurm, 8)
    assert seven.is_ours()


def test_a_silent_squeue_lets_nobody_take_over_and_the_sentence_says_so(slurm, seven):
    slurm.has("8|0|8_0|RUNNING|N/A|n2|None")
    slurm.mood("squeue", "silent")
    with pytest.raises(TemporaryError, match="is not known: Slurm does not answer"):
        take(slurm, 8)
    assert seven.is_ours()
    slurm.mood("squeue", "")
    assert take(slurm, 8).is_ours() and not seven.is_ours()


def test_a_later_start_of_the_task_needs_no_squeue(slurm, seven):
    slurm.mood("squeue", "silent")
    assert take(slurm, 7, restarts=1).is_ours()
    assert not seven.is_ours()
    with pytest.raises(TemporaryError, match="left alone"):
        take(slurm, 7)


def test_an_end_that_was_said_is_enough(slurm, seven):
    seven.end()
    slurm.mood("squeue", "silent")
    assert take(slurm, 8).is_ours()


def test_of_many_jobs_that_take_over_at_once_one_gets_the_queue(slurm):
    rows = [f"{number}|0|{number}_0|RUNNING|N/A|n1|None" for number in range(10, 18)]
    slurm.has(*rows)

    def try_it(number: int) -> bool:
        try:
            return take(slurm, number).is_ours()
        except BoxcarError:
            return False

    with ThreadPoolExecutor(8) as many:
        assert sum(many.map(try_it, range(10, 18))) == 1


def test_in_a_container_what_squeue_said_outside_at_this_start_counts(slurm, seven, monkeypatch):
    (slurm.folder / "bin" / "squeue").unlink()
    monkeypatch.setenv("PATH", str(slurm.folder / "bin"))
    monkeypatch.setattr(ownership.squeue.commands, "_USUAL", ())
    outside = slurm.tier.slurm_outside(QUEUE)
    for said in ("", "8_0 1\n8_0|RUNNING\n", "8_0 0\n7_0|RUNNING\n8_0|RUNNING\n"):
        outside.write_text(said)
        with pytest.raises(TemporaryError):
            take(slurm, 8)
    outside.write_text("8_0 0\n8_0|RUNNING\n")
    assert take(slurm, 8).is_ours()


def test_a_login_node_does_nothing_beside_an_agent_that_its_own_lock_does_not_show(slurm, seven):
    slurm.tier.lock(QUEUE).parent.mkdir(parents=True)
    assert ownership.hold(slurm.tier, QUEUE, 0) is None
    slurm.mood("squeue", "silent")
    with pytest.raises(TemporaryError, match="Slurm does not answer"):
        ownership.hold(slurm.tier, QUEUE, 0)
    slurm.mood("squeue", "")
    slurm.has("8|0|8_0|RUNNING|N/A|n2|None")
    fd = ownership.hold(slurm.tier, QUEUE, 0)
    assert fd is not None
    os.close(fd)


def test_without_a_job_the_variable_is_refused(slurm):
    with pytest.raises(InputError, match="no job of Slurm"):
        ownership.take(slurm.tier, QUEUE, {})


# --- jobs that ended


AT = "2026-11-22T10:00:00.000Z"
BEFORE = Lease("queue_1", "7", "0", 0, "n1", AT)
AGAIN = replace(BEFORE, restarts=1)
OTHER = replace(BEFORE, job="9")
# Of a real sacct 22.05, with -D: each start of a task is a row.
SACCT = "7_0|NODE_FAIL\n7_0|PREEMPTED\n7_0|RUNNING\n7_1|CANCELLED by 0\n"


def sacct(slurm: Pretended, text: str, code: int = 0) -> None:
    program = slurm.folder / "bin" / "sacct"
    program.write_text(f"#!/bin/sh\ncat <<'X'\n{text}X\nexit {code}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("before", "state"),
    [
        (BEFORE, "NODE_FAIL"),
        (AGAIN, "PREEMPTED"),
        (replace(BEFORE, restarts=2), None),  # it runs
        (replace(BEFORE, task="1"), "CANCELLED"),
        (replace(BEFORE, restarts=5), None),
    ],
)
def test_sacct_says_how_each_start_of_a_task_ended(before, state):
    assert ended.in_sacct(SACCT, before) == state


def test_with_accounting_it_is_asked_first(slurm):
    sacct(slurm, SACCT)
    assert ended.state_of(BEFORE, AGAIN, slurm.tier) == "NODE_FAIL"


def test_without_accounting_an_earlier_start_was_queued_again_and_squeue_knows_another_job(slurm):
    sacct(slurm, "Slurm accounting storage is disabled\n", code=1)
    assert ended.state_of(BEFORE, AGAIN, slurm.tier) == "REQUEUED"
    slurm.has("7|0|7_0|OUT_OF_MEMORY|N/A|n1|None", "9|0|9_0|RUNNING|N/A|n1|None")
    assert ended.state_of(BEFORE, OTHER, slurm.tier) == "OUT_OF_MEMORY"
    slurm.has("9|0|9_0|RUNNING|N/A|n1|None")
    assert ended.state_of(BEFORE, OTHER, slurm.tier) is None


def test_a_silent_slurm_and_a_script_that_came_to_its_end_tell_nothing(slurm):
    slurm.mood("squeue", "silent")
    sacct(slurm, "", code=1)
    assert ended.state_of(BEFORE, OTHER, slurm.tier) is None
    for state in ("COMPLETED", "FAILED"):
        assert ended.in_sacct(f"7_0|{state}\n", BEFORE) is None
        assert ended.in_squeue({"7_0": state}, BEFORE) is None


# --- jobs that start in vain


Said = tuple[str, dict[str, Any]]


def session(*between: Said, by: str | None = "signal") -> list[Said]:
    """What one allocation writes."""
    end: list[Said] = [("agent.stopped", {"by": by})] if by else []
    return [("agent.started", {}), ("cell.started", {"cell": "a"}), *between, *end]


def step(number: int, **more: int) -> Said:
    return ("cell.progress", {"cell": "a", "progress": {"step": number, **more}})


def events(*sessions: list[Said]) -> list[Event]:
    said = [one for part in sessions for one in part]
    return [
        Event(seq, str(seq), f"2026-11-22T10:00:{seq:02d}.000Z", type_, data)
        for seq, (type_, data) in enumerate(said, 1)
    ]


def test_three_restarts_without_a_new_step_are_enough_and_the_reason_is_said():
    same = session(step(50))
    found = in_vain.reason(events(session(step(50)), same, same, same), 4, None)
    assert "no cell made a new step in the last 3 allocations" in str(found)
    assert "slurm: {time: …}" in str(found)


@pytest.mark.parametrize("by", ["signal", None])
def test_a_killed_allocation_counts_like_one_that_was_asked_to_leave(by):
    assert in_vain.reason(events(*[session(by=by)] * 3), 3, None)


@pytest.mark.parametrize(
    "progress",
    [step(51), step(3, epoch=2), ("cell.verified", {"cell": "b"}), ("cell.failed", {"cell": "b"})],
)
def test_any_of_three_that_came_further_lets_it_go_on(progress):
    before = session(step(50, epoch=1))
    assert in_vain.reason(events(before, session(progress), session(), session()), 3, None) is None


def test_a_checkpoint_is_a_step_also_of_a_script_that_reports_none():
    all_alike = events(session(), session(), session())
    assert in_vain.reason(all_alike, 3, "2026-11-22T10:00:08.000Z") is None
    assert in_vain.reason(all_alike, 3, "2026-11-21T10:00:00.000Z")


def test_a_new_launch_is_given_its_own_chances():
    assert in_vain.reason(events(*[session()] * 5), 0, None) is None
    assert in_vain.reason(events(*[session()] * 2), 3, None) is None


def test_what_a_person_stopped_is_no_restart_in_vain():
    assert in_vain.reason(events(session(), session(by="stop"), session()), 3, None) is None


def test_how_often_slurm_has_started_it_again_is_in_the_environment():
    assert in_vain.restarts({"SLURM_RESTART_COUNT": "3"}) == 3
    assert in_vain.restarts({"SLURM_RESTART_COUNT": "1", "BOXCAR_RESUBMITS": "2"}) == 3
    assert in_vain.restarts({}) == in_vain.restarts({"SLURM_RESTART_COUNT": "x"}) == 0


# --- the lead


@pytest.mark.parametrize(
    ("own_s", "copied_s", "most_s", "lead_s"),
    [(90, 5.0, 900, 90), (90, 100.0, 900, 330), (90, 1000.0, 900, 900), (15, 100.0, None, 330)],
)
def test_the_lead_grows_with_what_the_last_copies_took_within_the_limits_share(
    own_s, copied_s, most_s, lead_s
):
    assert submit.lead_s(own_s, copied_s, most_s) == lead_s


def test_only_a_longer_lead_than_the_scripts_is_asked_for(slurm):
    script = slurm.folder / "run_slurm.sh"
    script.write_text("#!/bin/bash\n#SBATCH --signal=B:USR1@90\n")
    assert submit._lead_option(script, slurm.tier, 900) == []
    for cell, seconds in (("a", 3.0), ("b", 60.0), ("c", None)):
        file = FileRecord("x", 1, "0" * 64)
        pointer = Resume(cell, 1, AT, "latest.pth", file, seconds=seconds)
        atomic.make_folder(slurm.tier.resume(cell))
        path = slurm.tier.resume(cell) / resume_pointer.FILE
        atomic.write_whole(path, codec.to_document(pointer))
    assert submit._lead_option(script, slurm.tier, 900) == ["--signal=B:USR1@210"]
    assert submit._lead_option(script, slurm.tier, 100) == ["--signal=B:USR1@100"]
