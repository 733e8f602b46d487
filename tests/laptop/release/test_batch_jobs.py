from __future__ import annotations

import pytest

from boxcar.laptop.project.profiles.slurm_options import Cluster, SlurmOfJob, SlurmOptions
from boxcar.laptop.release import batch_jobs

QUEUES = ["queue_1", "queue_2", "queue_3"]


def test_queues_with_the_same_options_are_one_array() -> None:
    [job] = batch_jobs.of_queues(QUEUES, Cluster(partition="gpu"), SlurmOfJob(time="60"))
    assert job.script == "run_slurm.sh"
    assert job.queues == {0: "queue_1", 1: "queue_2", 2: "queue_3"}
    assert list(job.options.lines()) == ["--partition=gpu", "--time=60"]


def test_a_queue_with_options_of_its_own_is_an_array_of_its_own_with_its_own_index() -> None:
    own = {"queues/queue_2.txt": SlurmOptions(gres="gpu:2")}
    first, second = batch_jobs.of_queues(QUEUES, Cluster(), SlurmOfJob(queues=own))
    assert (first.script, first.queues) == ("run_slurm_1.sh", {0: "queue_1", 2: "queue_3"})
    assert (second.script, second.queues) == ("run_slurm_2.sh", {1: "queue_2"})
    assert list(second.options.lines()) == ["--gres=gpu:2"]


def test_the_index_of_a_queue_does_not_depend_on_which_queues_are_submitted() -> None:
    [job] = batch_jobs.of_queues(QUEUES, Cluster())
    assert batch_jobs.indices(job, ["queue_3"]) == {2: "queue_3"}


@pytest.mark.parametrize(
    ("grace_s", "time_s", "expected_s"),
    [(30, None, 90), (30, 86_400, 90), (300, 86_400, 630), (300, 600, 150), (30, 60, 15)],
)
def test_the_agent_gets_time_to_save_and_at_most_a_quarter_of_the_limit(
    grace_s: float, time_s: int | None, expected_s: int
) -> None:
    assert batch_jobs.signal_s(grace_s, time_s) == expected_s


def test_the_job_has_the_last_word_on_the_login_node() -> None:
    assert batch_jobs.login(Cluster(login="hpc"), SlurmOfJob()) == "hpc"
    assert batch_jobs.login(Cluster(login="hpc"), SlurmOfJob(login="hpc2")) == "hpc2"
    assert batch_jobs.login(Cluster(), SlurmOfJob()) is None


def test_cell_by_cell_each_queue_is_an_array_of_its_own() -> None:
    jobs = batch_jobs.of_queues(QUEUES[:2], Cluster(), SlurmOfJob(per="cell", time="60"))
    assert [job.queues for job in jobs] == [{0: "queue_1"}, {1: "queue_2"}]
    assert {job.script for job in jobs} == {"run_slurm_1.sh", "run_slurm_2.sh"}
    assert list(jobs[0].options.lines()) == ["--time=60"]
