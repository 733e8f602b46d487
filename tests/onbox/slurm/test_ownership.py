from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from pretended import Pretended

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from onbox.slurm import ownership
from onbox.slurm.ownership import Owned

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


def test_a_running_jobs_queue_is_left_alone_also_where_locks_keep_nobody_out(
    slurm: Pretended, seven: Owned
) -> None:
    with pytest.raises(TemporaryError, match=r"7_0 on .*; it was left alone"):
        take(slurm, 8)
    assert seven.is_ours()


def test_a_silent_squeue_lets_nobody_take_over_and_the_sentence_says_so(
    slurm: Pretended, seven: Owned
) -> None:
    slurm.has("8|0|8_0|RUNNING|N/A|n2|None")
    slurm.mood("squeue", "silent")
    with pytest.raises(TemporaryError, match="is not known: Slurm does not answer"):
        take(slurm, 8)
    assert seven.is_ours()
    slurm.mood("squeue", "")
    assert take(slurm, 8).is_ours() and not seven.is_ours()


def test_a_later_start_of_the_task_needs_no_squeue(slurm: Pretended, seven: Owned) -> None:
    slurm.mood("squeue", "silent")
    assert take(slurm, 7, restarts=1).is_ours()
    assert not seven.is_ours()
    with pytest.raises(TemporaryError, match="left alone"):
        take(slurm, 7)


def test_an_end_that_was_said_is_enough(slurm: Pretended, seven: Owned) -> None:
    seven.end()
    slurm.mood("squeue", "silent")
    assert take(slurm, 8).is_ours()


def test_of_many_jobs_that_take_over_at_once_one_gets_the_queue(slurm: Pretended) -> None:
    rows = [f"{number}|0|{number}_0|RUNNING|N/A|n1|None" for number in range(10, 18)]
    slurm.has(*rows)

    def try_it(number: int) -> bool:
        try:
            return take(slurm, number).is_ours()
        except BoxcarError:
            return False

    with ThreadPoolExecutor(8) as many:
        assert sum(many.map(try_it, range(10, 18))) == 1


def test_in_a_container_what_squeue_said_outside_at_this_start_counts(
    slurm: Pretended, seven: Owned, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_login_node_does_nothing_beside_an_agent_that_its_own_lock_does_not_show(
    slurm: Pretended, seven: Owned
) -> None:
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


def test_without_a_job_the_variable_is_refused(slurm: Pretended) -> None:
    with pytest.raises(InputError, match="no job of Slurm"):
        ownership.take(slurm.tier, QUEUE, {})
