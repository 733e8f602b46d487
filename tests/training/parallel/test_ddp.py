from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_at_work import free_port, run_ranks
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from boxcar.shared.errors import InputError
from boxcar.training.parallel import ddp
from boxcar.training.parallel.accumulate import GradientAccumulator
from boxcar.training.parallel.ddp import DDPWrapper
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.ranks import Ranks


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))
    return tmp_path


STEPS = 200
GLOBAL_BATCH = 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.linear(x))


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), Block(), Block(), nn.Linear(16, 1))


def samples(step: int) -> tuple[Tensor, Tensor]:
    """The global batch of one step: inputs [16, 4], targets [16, 1]."""
    inputs = torch.randn(GLOBAL_BATCH, 4, generator=torch.Generator().manual_seed(step))
    return inputs, inputs.prod(dim=1, keepdim=True)


def train(config: DistributedConfig, micro_steps: int, clip_norm: float | None) -> list[float]:
    """The mean loss over all ranks and micro-batches of each of 200 steps, as a person would."""
    here = ranks.join(config)
    wrapper = DDPWrapper(mlp(), config)
    model = wrapper.setup(here.rank, here.world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    accumulator = GradientAccumulator(micro_steps, clip_norm=clip_norm)
    losses, means = [], []
    for micro in range(STEPS * micro_steps):
        step, part = divmod(micro, micro_steps)
        mine = slice(part * here.world + here.rank, None, micro_steps * here.world)
        inputs, targets = (t[mine].to(here.device) for t in samples(step))
        with accumulator.micro_step(model, micro), wrapper.autocast():
            loss = nn.functional.mse_loss(model(inputs), targets)
            losses.append(loss.detach())
            if accumulator.step(loss, optimizer, micro):
                means.append(torch.stack(losses[-micro_steps:]).mean())
    everyone = torch.stack(means).to("cpu", torch.float64)
    if here.world > 1:
        torch.distributed.all_reduce(everyone)
    wrapper.cleanup()
    return (everyone / here.world).tolist()


def assert_same_curve(a: list[float], b: list[float]) -> None:
    assert len(a) == len(b) == STEPS
    # Sums in another order drift apart by about 1e-7 a step, which training here does not amplify.
    assert a == pytest.approx(b, rel=1e-3, abs=1e-6)
    assert a[-1] < a[0] / 2


@pytest.mark.parametrize(
    ("micro_steps", "clip_norm"), [(1, None), (2, 0.5)], ids=["plain", "accumulated and clipped"]
)
def test_two_ranks_equal_one_rank_over_200_steps(micro_steps: int, clip_norm: float | None) -> None:
    one = run_ranks(1, train, DistributedConfig(), 1, clip_norm)[0]
    first, second = run_ranks(2, train, DistributedConfig(), micro_steps, clip_norm)
    assert first == second
    assert_same_curve(one, first)


def set_up(config: DistributedConfig) -> dict[str, Any]:
    here = ranks.join(config)
    wrapper = DDPWrapper(mlp(), config)
    model = wrapper.setup(here.rank, here.world)
    loss = model(torch.ones(2, 4) * (here.rank + 1)).sum()
    loss.backward()
    with wrapper.autocast():
        inside = model(torch.ones(2, 4)).dtype
    return {
        "type": type(model),
        "unwrapped": list(wrapper.unwrapped.state_dict()) == list(mlp().state_dict()),
        "hook": bool(model._comm_hooks) if hasattr(model, "_comm_hooks") else None,
        "unused": getattr(model, "find_unused_parameters", None),
        "grad": next(model.parameters()).grad,
        "autocast": inside,
        "metrics": wrapper.all_reduce_metrics({"rank": here.rank}),
        "blocks": ["forward" in vars(m) for m in wrapper.unwrapped.modules() if type(m) is Block],
    }


def test_what_setup_returns_is_torchs_own_module() -> None:
    for answer in run_ranks(2, set_up, DistributedConfig()):
        assert answer["type"] is DistributedDataParallel
        assert answer["unwrapped"] and answer["hook"] is False and answer["unused"] is False
        assert answer["autocast"] == torch.float32
        assert answer["metrics"] == {"rank": 0.5}
        assert answer["blocks"] == [False, False]


def test_each_option_reaches_torch() -> None:
    config = DistributedConfig(
        find_unused_parameters=True,
        mixed_precision_policy="bf16",
        reduce_dtype="fp16",
        activation_checkpointing=True,
        wrap_blocks=("Block",),
    )
    plain = run_ranks(2, set_up, DistributedConfig())
    first, second = run_ranks(2, set_up, config)
    assert first["hook"] is True and first["unused"] is True
    assert first["autocast"] == torch.bfloat16
    assert first["blocks"] == [True, True]
    assert torch.equal(first["grad"], second["grad"])
    # Reduced in 16 bits: near, and not the same.
    assert not torch.equal(first["grad"], plain[0]["grad"])
    torch.testing.assert_close(first["grad"], plain[0]["grad"], rtol=0.02, atol=0.02)


@pytest.mark.parametrize("strategy", ["ddp", "single"])
def test_one_rank_gets_its_model_back_unwrapped(strategy: str, out: Path) -> None:
    model = mlp()
    wrapper = DDPWrapper(model, DistributedConfig(strategy=strategy))
    try:
        assert wrapper.setup(0, 1) is model
        assert wrapper.unwrapped is model
        facts = json.loads((out / "training.json").read_text())["ddp"]
        assert (facts["strategy"], facts["param_dtype"]) == (strategy, "torch.float32")
    finally:
        wrapper.cleanup()


def test_fsdp_is_sent_to_its_own_wrapper() -> None:
    with pytest.raises(InputError, match="use FSDPWrapper"):
        DDPWrapper(mlp(), DistributedConfig(strategy="fsdp"))


def test_numbers_that_are_not_the_launchers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    port = str(free_port())
    launched = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "none"}
    for name, value in {**launched, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, value)
    try:
        with pytest.raises(InputError) as caught:
            DDPWrapper(mlp(), DistributedConfig()).setup(1, 2)
        assert [problem.split(",")[0] for problem in caught.value.problems] == [
            "setup was called with rank 1",
            "setup was called with world_size 2",
        ]
    finally:
        ranks.leave()


def test_a_model_on_the_gpu_of_rank_instead_of_local_rank_is_told() -> None:
    here = Ranks(9, 1, 16, 8, torch.device("cuda", 1))
    (problem,) = ddp.foreign_devices({torch.device("cuda", 9), torch.device("cpu")}, here)
    assert "the model lies on cuda:9, but the device of rank 9 is cuda:1, by its LOCAL_RANK 1" in (
        problem
    )
    assert ddp.foreign_devices({torch.device("cuda", 1)}, here) == []


def test_setup_looks_where_the_model_lies() -> None:
    try:
        with pytest.raises(InputError, match="the model lies on meta"):
            DDPWrapper(mlp().to("meta"), DistributedConfig()).setup()
    finally:
        ranks.leave()


def batchnorm() -> list[str]:
    here = ranks.join()
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).to(here.device)
    model = DDPWrapper(model, DistributedConfig()).setup()
    model(torch.randn(4, 4, device=here.device)).sum().backward()
    return [type(module).__name__ for module in model.module]


def test_batchnorm_on_the_cpu_stays_and_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    here = Ranks(0, 0, 2, 2, torch.device("cpu"))
    model = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4))
    assert ddp._sync_batchnorm(model, here) is model
    assert capfd.readouterr().err.count("SyncBatchNorm needs CUDA") == 1
    ddp._sync_batchnorm(mlp(), here)
    assert capfd.readouterr().err == ""
    assert run_ranks(2, batchnorm) == [["Linear", "BatchNorm1d"]] * 2


def test_batchnorm_on_gpus_is_synchronised() -> None:
    here = Ranks(0, 0, 2, 2, torch.device("cuda", 0))
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    weight = model[1].weight
    synced = ddp._sync_batchnorm(model, here)
    assert type(synced[1]) is nn.SyncBatchNorm
    # The optimizer may hold it already.
    assert synced[1].weight is weight


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_one_gpu_trains_like_one_cpu() -> None:
    on_gpu = train(DistributedConfig(), 2, 0.5)
    on_cpu = run_ranks(1, train, DistributedConfig(), 2, 0.5, env={"CUDA_VISIBLE_DEVICES": ""})[0]
    assert_same_curve(on_gpu, on_cpu)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_equal_one_over_200_steps() -> None:
    one = run_ranks(1, train, DistributedConfig(), 1, None)[0]
    two = run_ranks(2, train, DistributedConfig(backend="nccl"), 2, None)[0]
    assert_same_curve(one, two)
