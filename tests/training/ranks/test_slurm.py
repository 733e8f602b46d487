from __future__ import annotations

import pytest

from boxcar.shared.errors import InputError
from boxcar.training.ranks import rendezvous
from boxcar.training.ranks.rendezvous import RankNumbers, read_numbers

TASK = {
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "8",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_STEP_TASKS_PER_NODE": "4,2",
    "SLURM_NODELIST": "gpu[03,07]",
    "SLURM_JOB_ID": "1234",
}


@pytest.mark.parametrize(
    ("nodelist", "hosts"),
    [
        ("login1", ["login1"]),
        ("gpu[01-03,7],login1", ["gpu01", "gpu02", "gpu03", "gpu7", "login1"]),
        ("a-1,b.c-2", ["a-1", "b.c-2"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("rack[1-2]n[01,3]", ["rack1n01", "rack1n3", "rack2n01", "rack2n3"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
    ],
)
def test_a_node_list_is_read_as_scontrol_shows_it(nodelist: str, hosts: list[str]) -> None:
    assert rendezvous.hosts(nodelist) == hosts


def test_an_empty_node_list_is_told() -> None:
    with pytest.raises(InputError, match="should look like gpu"):
        rendezvous.hosts(",")


def test_a_task_becomes_a_rank() -> None:
    found = rendezvous.contract(TASK)
    assert read_numbers(found) == RankNumbers(rank=5, local_rank=1, world=6, local_world=2)
    assert (found["MASTER_ADDR"], found["GROUP_RANK"]) == ("gpu03", "1")


def test_tasks_of_a_job_agree_on_a_port_and_two_jobs_do_not() -> None:
    port = rendezvous.contract(TASK)["MASTER_PORT"]
    assert rendezvous.contract(TASK | {"SLURM_PROCID": "0"})["MASTER_PORT"] == port
    assert rendezvous.contract(TASK | {"SLURM_JOB_ID": "1235"})["MASTER_PORT"] != port
    assert rendezvous.contract(TASK | {"SLURM_STEP_ID": "1"})["MASTER_PORT"] != port
    assert rendezvous.contract(TASK, master_port=29500)["MASTER_PORT"] == "29500"
    # Whatever the job's number: no root, and no port that the kernel lends to clients.
    for job in range(0, 10**7, 99_991):
        found = rendezvous.contract(TASK | {"SLURM_JOB_ID": str(job)})["MASTER_PORT"]
        assert 1024 < int(found) < 32768


@pytest.mark.parametrize(("text", "here"), [("4(x2),2", 4), ("3", 3), ("8,1(x3)", 1)])
def test_tasks_of_this_node(text: str, here: int) -> None:
    found = rendezvous.contract(TASK | {"SLURM_STEP_TASKS_PER_NODE": text, "SLURM_LOCALID": "0"})
    assert found["LOCAL_WORLD_SIZE"] == str(here)


@pytest.mark.parametrize("name", ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODELIST"])
def test_what_slurm_did_not_set_is_named(name: str) -> None:
    with pytest.raises(InputError, match=f"did not set {name}: start the script by srun"):
        rendezvous.contract({key: value for key, value in TASK.items() if key != name})
