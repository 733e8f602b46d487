from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks_at_work import RanksFailed, run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from boxcar.training.hang import desync, rank_dump, stacks

FOLDER = Path("/out/hang")


def test_the_switch_is_off_unless_it_is_set() -> None:
    assert not desync.is_asked({})
    assert not desync.is_asked({"BOXCAR_DEBUG_HANGS": "0"})
    assert desync.is_asked({"BOXCAR_DEBUG_HANGS": "1"})


@pytest.mark.parametrize(
    ("version", "buffer", "dump"),
    [
        ("2.4.1+cu121", "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
        ("2.7.0", "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
        ("2.8.0", "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"),
        ("2.13.0+cpu", "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"),
    ],
)
def test_the_names_are_those_of_the_torch_that_is_there(
    version: str, buffer: str, dump: str
) -> None:
    found = desync.settings(FOLDER, version, {})
    assert found == {
        "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
        "TORCH_CPP_LOG_LEVEL": "INFO",
        buffer: "2000",
        dump: "/out/hang/flight_recorder_",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "NCCL_DEBUG": "WARN",
    }


@pytest.mark.parametrize("name", ["TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"])
def test_what_the_user_set_stays_under_either_name(name: str) -> None:
    found = desync.settings(FOLDER, "2.13.0", {name: "50", "NCCL_DEBUG": "INFO"})
    assert not {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "NCCL_DEBUG"} & set(found)
    assert "TORCH_FR_DUMP_TEMP_FILE" in found


def mismatch(folder: str) -> None:
    desync.enable(Path(folder))
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    if hasattr(torch._C._distributed_c10d, "_dump_fr_trace"):  # since torch 2.8 gloo has one
        told = rank_dump.last_collectives(with_stacks=False)
        assert ("all_reduce", [[1]]) in [(e["collective"], e["sizes"]) for e in told], told
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
    else:
        dist.broadcast(torch.ones(1), src=1)


def test_the_switch_makes_torch_name_a_mismatch(tmp_path: Path) -> None:
    """The debug level is read when torch is imported, which was long before."""
    with pytest.raises(RanksFailed) as failed:
        run_ranks(2, mismatch, str(tmp_path))
    assert "Detected mismatch between collectives on ranks" in str(failed.value)
    said = [log.count("boxcar: hangs are debugged") for log in failed.value.logs]
    assert said == [1, 0]


class TwoBranches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.used(inputs)


def ddp_under_the_switch(folder: str) -> tuple[str, int]:
    """A DDP, also one with branches that are not used, and what it leaves to its last step."""
    desync.enable(Path(folder))
    dist.init_process_group("gloo")
    model = DistributedDataParallel(TwoBranches(), find_unused_parameters=True)
    for _ in range(3):
        model(torch.ones(3, 4)).sum().backward()
    with model.join():
        for _ in range(2 + dist.get_rank()):
            model(torch.ones(3, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives"):
        dist.all_reduce(torch.ones(1 + dist.get_rank()))
    return dist.get_debug_level().name, sum(p.grad is not None for p in model.parameters())


def test_a_ddp_is_built_and_trains_under_the_switch(tmp_path: Path) -> None:
    """DDP's log reads beyond the group that compares the collectives: SIGSEGV in torch 2.13."""
    assert run_ranks(2, ddp_under_the_switch, str(tmp_path)) == [("DETAIL", 2)] * 2


def too_late() -> str:
    os.environ["MASTER_PORT"] = "0"
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="before init_process_group") as refused:
        desync.enable(FOLDER)
    return str(refused.value)


def test_the_switch_comes_before_the_group() -> None:
    assert "found a group already" in run_ranks(1, too_late)[0]


def test_an_entry_of_the_flight_recorder_is_read_with_its_stack() -> None:
    entry = {
        "profiling_name": "nccl:all_reduce",
        "collective_seq_id": 7,
        "state": "started",
        "input_sizes": [[3]],
        "frames": [
            {
                "filename": "/x/torch/distributed/distributed_c10d.py",
                "name": "all_reduce",
                "line": 9,
            },
            {"filename": "/code/train.py", "name": "train", "line": 5},
        ],
    }
    found = rank_dump._entry(entry)
    assert (found["collective"], found["seq"], found["is_pending"]) == ("all_reduce", 7, True)
    assert [frame.line for frame in found["frames"]] == [5, 9]
    assert found["frames"][1].module == "torch.distributed.distributed_c10d"
    assert stacks.collective(found["frames"]) == "all_reduce"
    assert [frame.line for frame in stacks.users(found["frames"])] == [5]
    assert not rank_dump._entry({**entry, "state": "completed"})["is_pending"]
    assert not rank_dump._entry({**entry, "retired": True})["is_pending"]
