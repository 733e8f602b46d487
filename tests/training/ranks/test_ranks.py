from __future__ import annotations

import importlib
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fsdp_on_cpu import fully_shard, needs_fsdp_on_cpu
from ranks_at_work import RanksFailed, run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from waiting import LIMIT_S

from boxcar.shared.errors import InputError
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.rendezvous import RankNumbers

CPU = torch.device("cpu")


def test_alone_there_is_no_group_and_everything_still_answers() -> None:
    try:
        here = ranks.join()
        assert (here.rank, here.world, here.is_main) == (0, 1, True)
        assert not dist.is_initialized()
        assert ranks.agree_any(True) and not ranks.agree_any(False)
        assert ranks.who(True) == [0]
        loss = torch.tensor(2.0, requires_grad=True)
        assert ranks.all_reduce_metrics({"loss": loss}) == {"loss": 2.0}
    finally:
        ranks.leave()


def nccl_asked() -> str:
    ranks.join(DistributedConfig(backend="nccl"))
    return dist.get_backend()


def test_gloo_takes_the_place_of_nccl_where_there_is_no_gpu() -> None:
    assert run_ranks(2, nccl_asked, env={"CUDA_VISIBLE_DEVICES": ""}) == ["gloo"] * 2


def test_the_gpu_is_that_of_local_rank_and_never_that_of_rank() -> None:
    assert ranks._device(RankNumbers(9, 1, 16, 8), 8, {}) == torch.device("cuda", 1)
    assert ranks._device(RankNumbers(9, 1, 16, 8), 0, {}) == CPU
    with pytest.raises(InputError, match=r"LOCAL_RANK 2 has no GPU.*2 visible.*--nproc-per-node=2"):
        ranks._device(RankNumbers(2, 2, 4, 4), 2, {})


def test_a_gpu_that_slurm_shows_to_one_task_alone_is_number_0() -> None:
    assert ranks._device(RankNumbers(3, 3, 4, 4), 1, {"SLURM_PROCID": "3"}) == torch.device(
        "cuda", 0
    )


def agree() -> dict[str, Any]:
    before = ranks.current()
    here = ranks.join(DistributedConfig(timeout_s=LIMIT_S))
    answers = {
        "before": before.world,
        "here": (here.rank, here.local_rank, here.world, here.local_world, here.device),
        "same": ranks.join() is here and ranks.current() is here,
        "one": ranks.agree_any(here.rank == 1),
        "none": ranks.agree_any(False),
        "who": ranks.who(here.rank != 1),
        "mean": ranks.all_reduce_metrics({"b": here.rank, "a": 0.1}),
        "many": ranks.all_reduce_metrics({f"m{i}": i + here.rank for i in range(70)}),
        "nan": ranks.all_reduce_metrics({"loss": math.nan if here.rank else 1.0, "lr": 0.5}),
    }
    ranks.leave()
    return answers | {"after": ranks.current().world}


def test_ranks_agree_and_average_exactly() -> None:
    answers = run_ranks(3, agree)
    for rank, answer in enumerate(answers):
        assert (answer["before"], answer["after"]) == (1, 1)
        assert answer["here"] == (rank, rank, 3, 3, CPU)
        assert answer["same"]
        assert (answer["one"], answer["none"], answer["who"]) == (True, False, [0, 2])
        assert answer["mean"] == {"a": pytest.approx(0.1, abs=1e-16), "b": 1.0}
        assert answer["many"] == {f"m{i}": i + 1.0 for i in range(70)}
        assert math.isnan(answer["nan"]["loss"]) and answer["nan"]["lr"] == 0.5
    assert answers[0]["mean"] == answers[1]["mean"] == answers[2]["mean"]


DIFFERENT = [
    (["loss"], ["loss", "acc"]),
    (["loss"], []),
    (["a"], [f"m{i}" for i in range(40)]),
]


def differ() -> list[str]:
    here = ranks.join()
    said = []
    for names in DIFFERENT:
        with pytest.raises(InputError) as caught:
            ranks.all_reduce_metrics(dict.fromkeys(names[here.rank], 1.0))
        said.append(str(caught.value))
    return said


def test_metrics_of_different_names_are_told_on_all_ranks() -> None:
    first, second = run_ranks(2, differ)
    assert first == second
    for names, said in zip(DIFFERENT, first, strict=True):
        told = [f"rank {rank}: {', '.join(sorted(given))}" for rank, given in enumerate(names)]
        assert said.endswith("; ".join(told))


def join_again() -> list[int]:
    worlds = []
    for _ in range(2):
        worlds.append(ranks.join().world)
        ranks.leave()
    return worlds


def test_the_same_processes_may_meet_again() -> None:
    assert run_ranks(2, join_again) == [[2, 2], [2, 2]]


def threads() -> dict[int, str]:
    """The name of each thread, by its id."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(task.name): (task / "comm").read_text().strip() for task in tasks}


def leave_with_a_model_in_hand(kind: str) -> tuple[int, list[str]]:
    before = threads()
    # A group of one has all the threads of a larger one.
    ranks.join(DistributedConfig(strategy="fsdp"))
    # Older torch gives gloo's threads no name.
    of_python = {thread.native_id for thread in threading.enumerate()}
    of_join = set(threads()) - set(before) - of_python
    model: nn.Module = nn.Linear(4, 4)
    if kind == "FSDP":
        fully_shard(model)
    else:
        model = DistributedDataParallel(model)
    if kind == "compiled DDP":
        model = torch.compile(model, backend="eager")
    model(torch.ones(2, 4)).sum().backward()
    if kind == "DDP as garbage":
        del model
    ranks.leave()
    left = [name for task, name in threads().items() if task in of_join or "gloo" in name]
    return len(of_join), left


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are read from /proc")
@pytest.mark.parametrize(
    "kind",
    ["DDP", "DDP as garbage", "compiled DDP", pytest.param("FSDP", marks=needs_fsdp_on_cpu)],
)
def test_no_thread_of_gloo_outlives_leave_even_if_the_model_does(kind: str) -> None:
    """Such a thread is what aborts an interpreter that ends."""
    ((of_join, left),) = run_ranks(1, leave_with_a_model_in_hand, kind)
    assert of_join > 0
    assert left == []


def import_late() -> list[str]:
    late = "torch.distributed.nn.functional"
    for name in (late, "boxcar.training.ranks.ranks"):
        sys.modules.pop(name, None)
    own = importlib.import_module("boxcar.training.ranks.ranks")
    before = threads()
    own.join(DistributedConfig(strategy="fsdp"))
    # As DDP does. Its functions have the group of this moment as a default, if it is new.
    importlib.import_module(late)
    own.leave()
    of_python = {thread.native_id for thread in threading.enumerate()}
    return [n for task, n in threads().items() if task not in before.keys() | of_python]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are read from /proc")
def test_what_torch_imports_late_holds_no_group() -> None:
    assert run_ranks(1, import_late) == [[]]


def join_slowly(folder: Path) -> list[str]:
    init, rank = dist.init_process_group, os.environ["RANK"]

    def slow_init(*args: Any, **options: Any) -> None:
        init(*args, **options)
        if rank == "1":
            time.sleep(0.2)
        (folder / rank).touch()

    dist.init_process_group = slow_init
    ranks.join()
    return sorted(path.name for path in folder.iterdir())


def test_nobody_has_joined_before_all_are_connected(tmp_path: Path) -> None:
    """A cell that is done already leaves at once, and gloo's connections to it would fail."""
    assert run_ranks(2, join_slowly, tmp_path) == [["0", "1"]] * 2


def debug_hangs() -> tuple[str, list[str]]:
    ranks.join(DistributedConfig(debug_hangs=True, timeout_s=LIMIT_S))
    ranks.agree_any(False)
    level = dist.get_debug_level().name
    ranks.leave()
    return level, [name for name in threads().values() if "gloo" in name]


def test_one_switch_debugs_hangs() -> None:
    assert run_ranks(2, debug_hangs) == [("DETAIL", [])] * 2


def use_an_own_group() -> tuple[int, int, bool]:
    dist.init_process_group("gloo")
    here = ranks.current()
    assert not ranks.agree_any(False)
    return here.rank, here.world, ranks.join() == here


def test_a_group_that_the_script_has_made_itself_is_used() -> None:
    assert run_ranks(2, use_an_own_group) == [(0, 2, True), (1, 2, True)]


def fail_on_rank_1() -> None:
    if ranks.join(DistributedConfig(timeout_s=LIMIT_S)).rank == 1:
        ranks.leave()
        raise SystemExit(42)
    with pytest.raises(RuntimeError):
        ranks.agree_any(False)


def test_a_rank_that_leaves_alone_does_not_hang_the_others() -> None:
    with pytest.raises(RanksFailed) as caught:
        run_ranks(2, fail_on_rank_1)
    assert caught.value.codes == [0, 42]


def fsdp_alone() -> tuple[bool, int]:
    ranks.join()
    here = ranks.join(DistributedConfig(strategy="fsdp"))
    return dist.is_initialized(), here.world


def test_one_rank_has_a_group_where_fsdp_needs_one() -> None:
    assert run_ranks(1, fsdp_alone) == [(True, 1)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_small_messages_travel_on_the_cpu_beside_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ | {"RANK": "0", "WORLD_SIZE": "1"})
    try:
        here = ranks.join(DistributedConfig(strategy="fsdp"))
        assert here.device == torch.device("cuda", 0)
        assert ranks._talk_device() == CPU
        dist.all_reduce(torch.ones(2, device=here.device))
    finally:
        ranks.leave()


def test_the_launcher_knows_the_nodes_and_nobody_says_them_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MASTER_PORT", "29400")
    config = DistributedConfig(strategy="fsdp", fsdp_sharding="hybrid_shard")
    assert config.problems(world=4)
    numbers = RankNumbers(rank=3, local_rank=1, world=4, local_world=2)
    launched = ranks._as_launched(config, numbers)
    assert (launched.num_nodes, launched.node_rank) == (2, 1)
    assert launched.problems(world=4) == []
