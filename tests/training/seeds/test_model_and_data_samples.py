"""What the documents write into models, configs and data scripts, typed as it stands there."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import yaml
from fsdp_on_cpu import needs_fsdp_on_cpu
from ranks_at_work import run_ranks
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import Dataset

from boxcar.training import (
    DDPWrapper,
    DistributedConfig,
    Fingerprint,
    FSDPWrapper,
    LatentCache,
    compile_model,
)
from boxcar.training.fetch import fetch
from boxcar.training.parallel import fsdp

COMPILE = {
    "before": "compile: false                   # Disabled\ncompile_mode: reduce-overhead",
    "after": "compile: true                    # ENABLED\ncompile_mode: default  # CRITICAL",
}


class LlamaDecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.net(x))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LlamaDecoderLayer() for _ in range(3))
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        out: torch.Tensor = self.head(x)
        return out


def compile_by(text: str) -> tuple[float, Any]:
    flags = yaml.safe_load(text)
    wrapper = DDPWrapper(Decoder(), DistributedConfig())
    model = wrapper.setup()
    if flags["compile"]:
        compile_model(model, wrapper.config, mode=flags["compile_mode"], backend="eager")
    model(torch.ones(2, 8)).sum().backward()
    gradient = float(sum(each.grad.sum() for each in model.parameters()))
    wrapper.cleanup()
    return round(gradient, 3), flags["compile"]


@pytest.mark.parametrize("which", COMPILE)
def test_the_configs_compile_keys_train_on_two_ranks(which: str, tmp_path: Path) -> None:
    first, second = run_ranks(2, compile_by, COMPILE[which], env={"BOXCAR_OUT": str(tmp_path)})
    assert first == second and first[1] is (which == "after")
    if which == "after":
        [start] = json.loads((tmp_path / "training.json").read_text())["starts"]
        assert start["compile"]["mode"] == "default"


def shard_by_policy() -> tuple[list[str], list[str]]:
    policy = functools.partial(
        transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer}
    )
    model = Decoder()
    named = {
        name: policy(module=part, recurse=False, nonwrapped_numel=1)
        for name, part in model.named_modules()
    }
    config = DistributedConfig(strategy="fsdp", wrap_blocks=("LlamaDecoderLayer",))
    wrapper = FSDPWrapper(model, config)
    sharded = wrapper.setup()
    units = fsdp.units(sharded)
    found = [name for name, part in sharded.named_modules() if name and part in units]
    wrapper.cleanup()
    return [name for name, is_unit in named.items() if is_unit], found


@needs_fsdp_on_cpu
def test_wrap_blocks_makes_the_units_of_torchs_transformer_policy() -> None:
    [(by_policy, by_name)] = run_ranks(1, shard_by_policy)
    assert by_policy == by_name == ["layers.0", "layers.1", "layers.2"]


def join_uneven() -> int:
    wrapper = DDPWrapper(Decoder(), DistributedConfig(find_unused_parameters=True))
    model = wrapper.setup()
    loader = [torch.ones(2, 8)] * (3 + 2 * dist.get_rank())
    steps = 0
    with Join([model]):
        for batch in loader:
            model(batch).sum().backward()
            steps += 1
    wrapper.cleanup()
    return steps


def test_join_around_the_wrapped_model_lets_ranks_end_at_different_batches() -> None:
    assert run_ranks(2, join_uneven) == [3, 5]


class Raw(Dataset[Any]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index))


def double(batch: torch.Tensor) -> torch.Tensor:
    return batch * 2


def read_by_mode(folder: str) -> tuple[str, list[float]]:
    """The document's option 2: from the disk under DDP, from memory where a rank is alone."""
    from boxcar.training.ranks import ranks

    world_size = ranks.join(DistributedConfig()).world
    cache = functools.partial(
        LatentCache,
        folder,
        dataset=Raw(),
        encoder=double,
        batch_size=4,
        fingerprint=Fingerprint.of(encoder="double", transform="doubled", data="0 to 11"),
    )
    if dist.is_initialized() and world_size > 1:
        made = cache(mode="mapped").fill()
    else:
        made = cache(mode="preloaded").fill()
    dataset = made.dataset()
    assert made.choice
    found = [float(dataset[number][0]) for number in range(len(dataset))]
    ranks.leave()
    return made.choice.mode, found


def test_the_cache_is_read_from_disk_by_two_ranks_and_from_memory_by_one(tmp_path: Path) -> None:
    doubled = [float(2 * number) for number in range(12)]
    assert run_ranks(2, read_by_mode, str(tmp_path)) == [("mapped", doubled)] * 2
    assert run_ranks(1, read_by_mode, str(tmp_path)) == [("preloaded", doubled)]


def test_every_split_is_looked_for_under_each_of_the_scripts_patterns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "b2"
    for place in (
        "full/advection1d/advection1d_train.h5",
        "full/advection1d/advection1d_val_000.h5",
        "pdebench/darcy2d_full_v1/darcy2d_train.h5",
    ):
        (store / place).parent.mkdir(parents=True, exist_ok=True)
        (store / place).write_text(place)
    found = fetch(
        {
            "to": str(tmp_path / "data"),
            "tasks": ["advection1d", "darcy2d"],
            "splits": {"train": "required", "val": "optional", "test": "optional"},
            "patterns": [
                f"file://{store}/full/{{task}}/{{task}}_{{split}}.h5",
                f"file://{store}/full/{{task}}/{{task}}_{{split}}_000.h5",
                f"file://{store}/pdebench/{{task}}_full_v1/{{task}}_{{split}}.h5",
            ],
        }
    )
    assert {what: path.read_text().split("/")[0] for what, path in found.items()} == {
        ("advection1d", "train"): "full",
        ("advection1d", "val"): "full",
        ("darcy2d", "train"): "pdebench",
    }
    assert "darcy2d" in capsys.readouterr().err  # what is not there is said, and nothing stops
