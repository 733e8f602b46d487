"""The samples of the document that this layer was made from, as they are typed there.

Ranks of torch.multiprocessing.spawn, without a launcher's variables: what `setup(rank, world)` says
is all that they know.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fsdp_on_cpu import needs_fsdp_on_cpu
from ranks_at_work import free_port
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from boxcar.shared.errors import InputError
from boxcar.training import (
    DDPWrapper,
    DistributedConfig,
    FSDPWrapper,
    GradientAccumulator,
    RankAwareDataLoader,
)
from boxcar.training.ranks import rendezvous

LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def literal_config(**changed: Any) -> DistributedConfig:
    """The configuration surface with its own defaults, each typed."""
    surface: dict[str, Any] = {
        "strategy": "ddp",
        "fsdp_sharding": "full_shard",
        "gradient_accumulation_steps": 1,
        "find_unused_parameters": False,
        "sync_batchnorm": True,
        "backend": "nccl",
        "num_nodes": 1,
        "node_rank": 0,
        "master_addr": "localhost",
        "master_port": "29500",
        "activation_checkpointing": False,
        "cpu_offload": False,
        "mixed_precision_policy": "fp16",
    }
    return DistributedConfig(**surface | changed)


class BrainAI(nn.Module):
    """Parts of several kinds, and heads of which each batch uses all."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({"decision": nn.Linear(8, 3), "meta": nn.Linear(8, 1)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.encoder(x))
        return torch.cat([head(hidden) for head in self.heads.values()], 1)


class Samples(Dataset[Any]):
    def __len__(self) -> int:
        return 14

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((4,), float(index)), index


def train(rank: int, world_size: int, config: DistributedConfig, out: str) -> None:
    """Word for word: wrapper, accumulator and loader of the document."""
    torch.manual_seed(0)
    kind = FSDPWrapper if config.strategy == "fsdp" else DDPWrapper
    wrapper = kind(BrainAI(), config)
    model = wrapper.setup(rank, world_size)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    accumulator = GradientAccumulator(accumulation_steps=2, scaler=None)
    assert accumulator.effective_batch_size(3, world_size) == 3 * 2 * world_size
    loader = RankAwareDataLoader(Samples(), config)
    seen: list[list[int]] = []
    stepped = 0
    for epoch in range(2):
        loader.set_epoch(epoch)
        seen.append([])
        for step_idx, (inputs, numbers) in enumerate(loader.get_loader()):
            with accumulator.micro_step(model, step_idx, is_last=step_idx == len(loader) - 1):
                loss = model(inputs).square().mean()
                stepped += accumulator.step(loss, optimizer, step_idx)
            seen[-1] += numbers.tolist()
    metrics = wrapper.all_reduce_metrics({"rank": float(rank)})
    if config.strategy == "fsdp":
        wrapper.save_distributed_checkpoint(f"{out}/saved")
        wrapper.load_distributed_checkpoint(f"{out}/saved")
    found = {
        "seen": seen,
        "stepped": stepped,
        "rank": metrics["rank"],
        "backend": dist.get_backend(),
        "port": os.environ["MASTER_PORT"],
        "kind": type(model).__name__,
        "unit": [name for name, part in model.named_modules() if type(part).__name__[:4] == "FSDP"],
    }
    Path(out, f"{rank}.json").write_text(json.dumps(found))
    wrapper.cleanup()


def spawned(config: DistributedConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("BOXCAR_OUT", str(out))
    torch.multiprocessing.spawn(train, args=(2, config, str(out)), nprocs=2)
    return [json.loads(Path(out, f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("strategy", ["ddp", pytest.param("fsdp", marks=needs_fsdp_on_cpu)])
def test_the_document_trains_on_two_spawned_ranks(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    config = literal_config(master_port=port, mixed_precision_policy="fp32")
    config.strategy = strategy  # changed before it is used
    config.batch_size = 3
    if strategy == "fsdp":
        config.wrap_blocks = ("encoder", "heads")
    first, second = spawned(config, tmp_path, monkeypatch)
    assert (first["backend"], first["port"], first["rank"]) == ("gloo", port, 0.5)
    for one, other in zip(first["seen"], second["seen"], strict=True):
        assert sorted(one + other) == list(range(14))  # each sample once, the last batch too
    assert first["seen"][0] != first["seen"][1]
    assert first["stepped"] == 2 * 2  # 3 micro-batches an epoch: a window of two, one of one
    if strategy == "fsdp":
        assert {"encoder", "heads.decision", "heads.meta"} <= set(first["unit"])


def test_the_literal_configuration_is_taken_on_a_machine_without_a_gpu(tmp_path: Path) -> None:
    config = literal_config()
    assert config.problems(world=2, device_type="cpu") == []
    assert config.master_port == 29500
    assert any("gloo" in note for note in config.notes(2, "cpu"))


def test_inside_a_launcher_it_must_be_the_launchers_rank() -> None:
    config = literal_config(master_port="29500")
    launched = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    assert rendezvous.by_hand(launched, config, 0, 8) == {}
    assert rendezvous.by_hand({"TORCHELASTIC_RUN_ID": "a", "RANK": "0"}, config, 0, 8) == {}
    # What some platforms preset for every process is no launcher.
    preset = {"RANK": "0", "WORLD_SIZE": "1"}
    assert rendezvous.by_hand(preset, config, 3, 4)["MASTER_PORT"] == "29500"
    with pytest.raises(InputError, match="rank 4 of 4: give 0 to 3"):
        rendezvous.by_hand({}, config, 4, 4)


def test_two_nodes_by_hand_meet_at_the_configs_address() -> None:
    config = literal_config(num_nodes=2, node_rank=1, master_addr="10.0.0.1")
    found = rendezvous.by_hand({}, config, 9, 16)
    assert (found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]) == ("1", "8")
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("10.0.0.1", "29500")
    config.master_addr = "localhost"
    with pytest.raises(InputError, match="leads every node to itself"):
        rendezvous.by_hand({}, config, 9, 16)


def test_the_sampler_is_taken_by_torchs_own_loader() -> None:
    seen: list[int] = []
    for rank in range(2):
        loader = RankAwareDataLoader(Samples(), batch_size=3, rank=rank, world=2)
        sampler = loader.get_sampler()
        assert isinstance(sampler, DistributedSampler)
        sampler.set_epoch(1)
        batches = DataLoader(Samples(), sampler=sampler, batch_size=3)
        assert len(batches) == len(loader)
        seen += [int(number) for _, numbers in batches for number in numbers]
    assert sorted(seen) == list(range(14))
    with pytest.raises(InputError, match="give it to DataLoader as sampler="):
        next(iter(DataLoader(Samples(), batch_sampler=sampler)))
