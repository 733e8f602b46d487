from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease, Standing

AT = "2026-11-22T10:00:00.000Z"
OTHERS = Lease("queue_1", "7", "0", 0, "n1", AT)
OWN = Lease("queue_1", "8", "0", 0, "n2", AT)


def test_a_queue_that_nobody_ever_had_is_free_without_asking_slurm():
    assert lease.standing(None, OWN, None) is Standing.FREE


def test_with_squeue_silent_nobody_takes_over():
    assert lease.standing(OTHERS, OWN, None) is Standing.UNKNOWN


@pytest.mark.parametrize(
    ("state", "standing"),
    [
        ("RUNNING", Standing.HELD),
        ("SUSPENDED", Standing.HELD),
        ("CONFIGURING", Standing.HELD),
        ("COMPLETING", Standing.ENDING),
        ("PENDING", Standing.FREE),  # it will find the queue taken when it starts again
        ("COMPLETED", Standing.FREE),
        ("NODE_FAIL", Standing.FREE),
        ("OUT_OF_MEMORY", Standing.FREE),
        ("A_WORD_OF_LATER_RELEASES", Standing.UNKNOWN),
    ],
)
def test_another_job_keeps_its_queue_until_squeue_says_that_it_is_over(state, standing):
    assert lease.standing(OTHERS, OWN, {"7_0": state, "8_0": "RUNNING"}) is standing


def test_a_job_that_squeue_does_not_have_any_more_is_over():
    assert lease.standing(OTHERS, OWN, {"8_0": "RUNNING"}) is Standing.FREE


def test_a_later_start_of_the_same_task_takes_over_and_an_earlier_one_never():
    again = replace(OTHERS, restarts=1, node="n2")
    assert lease.standing(OTHERS, again, None) is Standing.FREE
    assert lease.standing(again, OTHERS, None) is Standing.HELD
    assert lease.standing(again, again, None) is Standing.OURS


def test_another_task_of_the_same_array_is_another_job():
    assert lease.standing(OTHERS, replace(OTHERS, task="1"), {"7_0": "RUNNING"}) is Standing.HELD


def test_an_owner_that_said_its_end_is_believed_without_squeue():
    assert lease.standing(replace(OTHERS, ended_at=AT), OWN, None) is Standing.FREE


def test_the_owner_is_the_array_and_its_index_and_outside_of_a_job_there_is_none():
    environ = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}
    found = lease.owner(environ | {"SLURM_RESTART_COUNT": "1"}, "queue_1", "n1", AT)
    assert found and (found.named, found.restarts) == ("7_2", 1)
    alone = lease.owner({"SLURM_JOB_ID": "9"}, "queue_1", "n1", AT)
    assert alone and alone.named == "9"
    assert lease.owner({}, "queue_1", "n1", AT) is None


def test_the_newest_is_by_its_number_and_not_by_its_name():
    assert lease.numbers(["10.json", "9.json", "2.json", ".9.json.new", "x.json"]) == [2, 9, 10]
