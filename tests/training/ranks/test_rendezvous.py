from __future__ import annotations

import itertools
import os
import socket

import pytest
import torch.distributed as dist
from ranks_at_work import free_port, run_ranks
from waiting import LIMIT_S

from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training.ranks import ranks, rendezvous
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.rendezvous import RankNumbers, read_numbers

TORCHRUN = {
    "RANK": "9",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "16",
    "LOCAL_WORLD_SIZE": "8",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
}


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in TORCHRUN.items() if name not in names}


def test_the_launchers_variables_are_the_numbers() -> None:
    assert read_numbers(TORCHRUN) == RankNumbers(9, 1, 16, 8)
    assert read_numbers(without("LOCAL_WORLD_SIZE") | {"LOCAL_SIZE": "4"}).local_world == 4
    assert read_numbers(without("LOCAL_WORLD_SIZE")).local_world == 16


def test_without_a_launcher_there_is_one_rank() -> None:
    assert read_numbers({}) == RankNumbers(0, 0, 1, 1)
    assert read_numbers({"RANK": "0", "WORLD_SIZE": "1"}) == RankNumbers(0, 0, 1, 1)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_a_missing_variable_is_named_with_how_to_start(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is not: start it with `torchrun"):
        read_numbers(without(name))


def test_rank_0_without_a_world_is_no_single_rank() -> None:
    with pytest.raises(InputError, match="RANK=0 is set, but LOCAL_RANK, WORLD_SIZE"):
        read_numbers({"RANK": "0"})
    with pytest.raises(InputError, match="LOCAL_RANK=1 is set, but RANK, WORLD_SIZE"):
        read_numbers({"LOCAL_RANK": "1"})


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        ("RANK", "16", "0 to 15"),
        ("RANK", "-1", "0 to 15"),
        ("LOCAL_RANK", "8", "0 to 7"),
        ("WORLD_SIZE", "two", "1 or more"),
        ("MASTER_PORT", "http", "1 to 65535"),
    ],
)
def test_a_wrong_variable_is_named_with_its_range(name: str, value: str, range_: str) -> None:
    with pytest.raises(InputError, match=rf"{name} should be .*{range_}, found '{value}'"):
        read_numbers(TORCHRUN | {name: value})


def test_bare_srun_tasks_are_refused_because_each_would_train_alone() -> None:
    with pytest.raises(InputError, match=r"srun started 4 tasks.*DistributedLauncher"):
        read_numbers({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"})


def test_a_taken_port_is_told_with_who_to_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        # All addresses, as torch's store does.
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(port))
        with pytest.raises(InputError, match=f"MASTER_PORT {port} is taken.*ss -ltnp"):
            rendezvous.meet(RankNumbers(0, 0, 2, 2), timeout_s=LIMIT_S)


def join_unless_rank(missing: int) -> str:
    if int(os.environ["RANK"]) == missing:
        return "never came"
    with pytest.raises(TemporaryError) as caught:
        # The store of older torch counts whole seconds.
        ranks.join(DistributedConfig(timeout_s=1.0))
    assert not dist.is_initialized()
    return str(caught.value)


def test_a_rank_that_never_comes_is_named_by_those_that_wait() -> None:
    said = run_ranks(2, join_unless_rank, 1)[0]
    assert "rank 1 never came to 127.0.0.1:" in said
    assert "rank 0 waited 1 s for all 2" in said


def test_of_many_ranks_those_that_are_missing_are_named() -> None:
    store = dist.HashStore()
    for rank in (0, 2):
        store.add(f"rank{rank}", 1)
    names = [f"rank{rank}" for rank in range(5)]
    assert rendezvous._who_is_missing(store, names) == "rank 1, 3, 4 never came to"


def test_a_rank_0_that_never_comes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    with pytest.raises(TemporaryError, match="rank 1 did not reach rank 0"):
        rendezvous.meet(RankNumbers(1, 1, 2, 2), timeout_s=0.3)


def come_as_rank_1_twice() -> str:
    numbers = RankNumbers(int(os.environ["RANK"]), 0, 2, 2)
    store = rendezvous.meet(numbers, timeout_s=LIMIT_S)
    if numbers.rank == 0:
        store.wait(["done"])
        return ""
    # What a process of another job does that was given the same port.
    rendezvous._meetings = itertools.count()
    with pytest.raises(InputError) as caught:
        rendezvous.meet(numbers, timeout_s=LIMIT_S)
    store.set("done", "")
    return str(caught.value)


def test_two_jobs_on_one_port_are_told_apart() -> None:
    said = run_ranks(2, come_as_rank_1_twice)[1]
    assert "a second process joined" in said
    assert "two jobs share one MASTER_PORT" in said
