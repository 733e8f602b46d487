"""FSDP trains as one rank does, holds its share of the bytes, and its checkpoints fit any world."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fsdp_on_cpu import needs_fsdp_on_cpu
from ranks_at_work import run_ranks
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from boxcar.shared.errors import InputError
from boxcar.training.parallel.fsdp import FSDPWrapper
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig

GPUS = torch.cuda.device_count()
GLOBAL_BATCH = 8
OURS = {"strategy": "fsdp", "wrap_blocks": ("Block",)}


def on_cpu(*more: Any) -> Any:
    return pytest.param("cpu", *more, marks=needs_fsdp_on_cpu)


def on_gpus(world: int, *more: Any) -> Any:
    enough = pytest.mark.skipif(world > GPUS, reason=f"needs {world} CUDA GPUs")
    return pytest.param("cuda", *more, marks=[pytest.mark.gpu, enough])


def env(device: str, folder: Path | None = None) -> dict[str, str]:
    hidden = {} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
    return hidden | ({"BOXCAR_OUT": str(folder)} if folder else {})


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide = nn.Linear(width, 2 * width)
        self.back = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(torch.relu(self.wide(x)))


class Model(nn.Module):
    def __init__(self, width: int = 16, is_tied: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(20, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.head = nn.Linear(width, 20, bias=False)
        self.register_buffer("scale", torch.ones(1, dtype=torch.float64))
        if is_tied:
            self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.words(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch(step: int, world: int, rank: int, device: torch.device) -> torch.Tensor:
    """This rank's rows of the global batch of a step, the same one on any world size."""
    rows = torch.randint(20, (GLOBAL_BATCH, 6), generator=torch.Generator().manual_seed(step))
    return rows[rank::world].to(device)


def train_step(model: nn.Module, optimizer: Any, rows: torch.Tensor) -> torch.Tensor:
    logits = model(rows[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(wrapper: FSDPWrapper, model: nn.Module, optimizer: Any, steps: range) -> list[float]:
    here = ranks.current()
    losses = {}
    for step in steps:
        rows = batch(step, here.world, here.rank, here.device)
        losses[f"{step:03}"] = train_step(model, optimizer, rows).item()
    return list(wrapper.all_reduce_metrics(losses).values())


def begin(**changes: Any) -> tuple[FSDPWrapper, nn.Module, Any]:
    is_tied = changes.pop("is_tied", False)
    config = DistributedConfig(**OURS | changes)
    joined = ranks.join(config)
    # Each rank begins with other weights: rank 0's are the ones that count.
    torch.manual_seed(joined.rank)
    wrapper = FSDPWrapper(Model(is_tied=is_tied), config)
    model = wrapper.setup()
    return wrapper, model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def whole_run(steps: int, changes: dict[str, Any]) -> list[float]:
    wrapper, model, optimizer = begin(**changes)
    losses = train(wrapper, model, optimizer, range(steps))
    wrapper.cleanup()
    return losses


def plain_run(steps: int, is_tied: bool = False, device: str = "cpu") -> list[float]:
    """What a plain script on one process computes."""
    torch.manual_seed(0)
    model, where = Model(is_tied=is_tied).to(device), torch.device(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return [train_step(model, optimizer, batch(step, 1, 0, where)).item() for step in range(steps)]


@pytest.mark.parametrize(("device", "world"), [on_cpu(2), on_gpus(1, 1), on_gpus(2, 2)])
def test_ranks_equal_one_plain_process_at_each_of_200_steps(device: str, world: int) -> None:
    found = run_ranks(world, whole_run, 200, {}, env=env(device))
    assert found[0] == found[-1] == pytest.approx(plain_run(200, device=device), rel=2e-4)


def save_at_ten(folder: Path) -> list[float]:
    wrapper, model, optimizer = begin()
    train(wrapper, model, optimizer, range(10))
    model(torch.zeros(1, 2, dtype=torch.long, device=ranks.current().device))  # left gathered
    wrapper.save_distributed_checkpoint(folder / "step_10", optimizer)
    wrapper.export_consolidated(folder / "whole.pth")
    losses = train(wrapper, model, optimizer, range(10, 30))
    wrapper.cleanup()
    return losses


def go_on(folder: Path) -> list[float]:
    torch.manual_seed(99)
    wrapper, model, optimizer = begin()
    wrapper.load_distributed_checkpoint(folder / "step_10", optimizer)
    losses = train(wrapper, model, optimizer, range(10, 30))
    wrapper.cleanup()
    return losses


@pytest.mark.parametrize(
    ("device", "saved_on", "loaded_on"),
    [on_cpu(2, (1, 4)), on_gpus(1, 1, (1,)), on_gpus(4, 2, (1, 4))],
)
def test_a_checkpoint_goes_on_the_same_curve_on_any_number_of_ranks(
    tmp_path: Path, device: str, saved_on: int, loaded_on: tuple[int, ...]
) -> None:
    uninterrupted = run_ranks(saved_on, save_at_ten, tmp_path, env=env(device))[0]
    for world in loaded_on:
        losses = run_ranks(world, go_on, tmp_path, env=env(device))[0]
        assert losses == pytest.approx(uninterrupted, rel=1e-4)
    exported = torch.load(tmp_path / "whole.pth", weights_only=True)
    plain = Model()
    plain.load_state_dict(exported)
    rows = batch(10, 1, 0, torch.device("cpu"))
    loss = nn.functional.cross_entropy(plain(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    assert loss.item() == pytest.approx(uninterrupted[0], rel=1e-4)


def hybrid() -> tuple[list[float], tuple[int, ...]]:
    # Four ranks of this machine play two nodes of two.
    os.environ |= {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": str(int(os.environ["RANK"]) % 2)}
    wrapper, model, optimizer = begin(
        fsdp_sharding="hybrid_shard", num_nodes=2, master_addr="10.0.0.1", master_port=29500
    )
    losses = train(wrapper, model, optimizer, range(5))
    mesh = wrapper.get_sharding_policy().mesh
    wrapper.cleanup()
    return losses, mesh


@needs_fsdp_on_cpu
def test_hybrid_shard_shards_inside_a_node_and_copies_across_them() -> None:
    found = run_ranks(4, hybrid, env=env("cpu"))
    assert found[0][0] == pytest.approx(plain_run(5), rel=1e-4)
    assert found[0][1] == (2, 2)


@pytest.mark.parametrize(("device", "world"), [on_gpus(1, 1)])
def test_offloaded_and_recomputed_on_a_gpu_it_computes_the_same(device: str, world: int) -> None:
    changes = {"cpu_offload": True, "activation_checkpointing": True}
    found = run_ranks(world, whole_run, 5, changes, env=env(device))
    assert found[0] == pytest.approx(plain_run(5, device=device), rel=1e-4)


# --- seen in one run of two ranks, because it is their start that costs time

SHARDINGS: dict[str, dict[str, Any]] = {
    "shard_grad_op": {"fsdp_sharding": "shard_grad_op", "activation_checkpointing": True},
    "no_shard": {"fsdp_sharding": "no_shard"},
    "tied": {"is_tied": True},
    "offloaded": {"cpu_offload": True, "wrap_blocks": (), "wrap_min_params": 300},
}


@functools.cache
def seen() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return run_ranks(2, look, Path(folder), env=env("cpu", Path(folder)))


def look(folder: Path) -> dict[str, Any]:
    found = {
        "bytes": what_a_rank_holds(folder),
        "losses": {name: losses_of(changes) for name, changes in SHARDINGS.items()},
        "bf16": dtypes_under_bf16(),
        "one unit": said_about_one_unit(),
        "old optimizer": [said_of_an_old_optimizer(folder, how) for how in ("step", "save")],
        "foreign": said_of_bad_checkpoints(folder),
    }
    ranks.leave()
    return found


def losses_of(changes: dict[str, Any]) -> list[float]:
    wrapper, model, optimizer = begin(**changes)
    return train(wrapper, model, optimizer, range(5))


@needs_fsdp_on_cpu
@pytest.mark.parametrize("name", SHARDINGS)
def test_every_sharding_computes_what_one_plain_process_does(name: str) -> None:
    expected = plain_run(5, is_tied=name == "tied")
    assert [found["losses"][name] for found in seen()] == [pytest.approx(expected, rel=1e-4)] * 2


def what_a_rank_holds(folder: Path) -> tuple[int, int, int, dict[str, Any]]:
    wrapper, model, optimizer = begin()
    train(wrapper, model, optimizer, range(1))
    model.reshard()
    held = sum(p.to_local().numel() * p.element_size() for p in model.parameters())
    moments = sum(s["exp_avg"].to_local().numel() * 4 for s in optimizer.state.values())
    dist.barrier()
    facts = json.loads((folder / "training.json").read_text())["fsdp"]
    return held, moments, wrapper.get_sharding_policy().bytes_per_rank, facts


@needs_fsdp_on_cpu
def test_a_rank_holds_its_share_of_parameters_and_moments() -> None:
    whole = sum(param.numel() * 4 for param in Model().parameters())
    for held, moments, planned, facts in (found["bytes"] for found in seen()):
        assert held == moments == planned == whole / 2
        expected = {"sharding": "full_shard", "mesh": [2], "units": 3, "is_recomputed": False}
        assert facts == expected


def dtypes_under_bf16() -> tuple[torch.dtype, ...]:
    _, model, _ = begin(mixed_precision_policy="bf16")
    weight, outputs = next(model.parameters()), []
    model.blocks[0].wide.register_forward_hook(lambda module, args, out: outputs.append(out))
    logits = model(torch.zeros(1, 2, dtype=torch.long))
    return outputs[0].dtype, logits.dtype, weight.dtype, model.scale.dtype


@needs_fsdp_on_cpu
def test_bf16_computes_in_16_bits_and_keeps_weights_buffers_and_logits_in_32() -> None:
    expected = (torch.bfloat16, torch.float32, torch.float32, torch.float32)
    assert [found["bf16"] for found in seen()] == [expected] * 2


def said_about_one_unit() -> str:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        begin(wrap_blocks=())
    return said.getvalue()


@needs_fsdp_on_cpu
def test_the_whole_model_as_one_unit_is_warned_about_by_rank_0() -> None:
    said = [found["one unit"].count("the whole model is one unit") for found in seen()]
    assert said == [1, 0]


def said_of_an_old_optimizer(folder: Path, how: str) -> str:
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    wrapper = FSDPWrapper(model, DistributedConfig(**OURS))
    wrapper.setup(ranks.current().rank, 2)
    with pytest.raises(InputError) as raised:
        if how == "step":
            train(wrapper, model, optimizer, range(1))
        else:
            wrapper.save_distributed_checkpoint(folder / "never", optimizer)
    return str(raised.value)


@needs_fsdp_on_cpu
def test_an_optimizer_from_before_setup_is_refused() -> None:
    said = [text for found in seen() for text in found["old optimizer"]]
    assert len(said) == 4 and all("build it after setup" in text for text in said)


def said_of_bad_checkpoints(folder: Path) -> tuple[str, str]:
    wrapper, model, optimizer = begin()
    with pytest.raises(InputError) as too_early:
        wrapper.save_distributed_checkpoint(folder / "step_0", optimizer)
    train(wrapper, model, optimizer, range(1))
    wrapper.save_distributed_checkpoint(folder / "step_1", optimizer)
    other = FSDPWrapper(Model(width=8), DistributedConfig(**OURS))
    fresh = torch.optim.AdamW(other.setup(ranks.current().rank, 2).parameters())
    with pytest.raises(InputError) as foreign:
        other.load_distributed_checkpoint(folder / "step_1", fresh)
    assert not fresh.state and not (folder / "step_0").exists()
    return str(too_early.value), str(foreign.value)


@needs_fsdp_on_cpu
def test_saving_too_early_and_loading_another_model_are_told() -> None:
    for too_early, foreign in (found["foreign"] for found in seen()):
        assert "has not stepped yet" in too_early
        assert "model.words.weight: shape (20, 16) in the checkpoint, (20, 8) here" in foreign


# --- mistakes on one rank


def setup_wrongly() -> dict[str, str]:
    config = DistributedConfig(**OURS)
    ranks.join(config)
    done = FSDPWrapper(Model(), config)
    done.setup(0, 1)
    with torch.device("meta"):
        empty = Model()
    with FakeTensorMode():
        elsewhere = nn.ParameterList([torch.empty(2, device="cuda:1")])
    mistakes = {
        "setup was called with world_size 8": lambda: FSDPWrapper(Model(), config).setup(0, 8),
        "strategy is 'ddp'": lambda: FSDPWrapper(Model(), DistributedConfig()).setup(0, 1),
        "was called already": lambda: done.setup(0, 1),
        "is wrapped already": lambda: FSDPWrapper(done.unwrapped, config),
        "words.weight is on the meta device": lambda: FSDPWrapper(empty, config).setup(0, 1),
        "the model lies on cuda:1": lambda: FSDPWrapper(elsewhere, config).setup(0, 1),
        "call setup first": lambda: FSDPWrapper(Model(), config).export_consolidated("nowhere"),
    }
    said = {}
    for expected, mistake in mistakes.items():
        with pytest.raises(InputError) as raised:
            mistake()
        said[expected] = str(raised.value)
    return said


@needs_fsdp_on_cpu
def test_a_wrong_setup_names_its_cause() -> None:
    for expected, said in run_ranks(1, setup_wrongly, env=env("cpu"))[0].items():
        assert expected in said


def set_up_on_older_torch() -> str:
    if hasattr(torch.cpu.Stream, "record_event"):
        del torch.cpu.Stream.record_event
    with pytest.raises(InputError) as raised:
        FSDPWrapper(Model(), DistributedConfig(**OURS)).setup()
    return str(raised.value)


def test_on_the_cpu_an_older_torch_is_refused() -> None:
    (said,) = run_ranks(1, set_up_on_older_torch, env=env("cpu"))
    assert "FSDP on the CPU needs torch 2.7" in said
