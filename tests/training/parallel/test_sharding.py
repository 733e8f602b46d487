"""What becomes an FSDP unit, decided on a model that nothing has been done to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.parallel import sharding
from boxcar.training.ranks.config import DistributedConfig


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.Linear(4 * width, width))


class Model(nn.Module):
    def __init__(self, is_tied: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 100, bias=False)
        if is_tied:
            self.head.weight = self.words.weight


def plan(model: nn.Module | None = None, world: int = 4, **config: Any) -> sharding.ShardingPolicy:
    return sharding.plan(
        model or Model(),
        DistributedConfig(strategy="fsdp", **config),
        world=world,
        local_world=min(world, 2),
        device_type="cpu",
    )


def names(policy: sharding.ShardingPolicy) -> list[str]:
    return [unit.name for unit in policy.units]


BLOCKS = ["blocks.0", "blocks.1", "blocks.2"]


def test_a_named_block_class_becomes_units_and_the_root_holds_the_rest() -> None:
    policy = plan(wrap_blocks=("Block",))
    assert names(policy) == ["", *BLOCKS]
    assert policy.params == sum(param.numel() for param in Model().parameters())
    assert policy.units[0].params == 800 + 16 + 800


def test_an_unknown_block_class_is_named_with_what_there_is() -> None:
    with pytest.raises(
        InputError, match=r"no module of class or name 'Blok'; did you mean 'Block'"
    ):
        plan(wrap_blocks=("Blok",))


def test_repeated_blocks_are_found_whole_and_large_layers_beside_them() -> None:
    assert names(plan(wrap_min_params=500)) == ["", "words", *BLOCKS, "head"]


def test_blocks_count_together_when_each_of_them_is_small() -> None:
    one = sum(param.numel() for param in Block().parameters())
    assert names(plan(wrap_min_params=one + 1)) == ["", *BLOCKS]


def test_a_part_that_is_large_without_blocks_is_a_unit() -> None:
    model = nn.ModuleDict({"encoder": nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9))})
    assert names(plan(model, wrap_min_params=150)) == ["", "encoder"]


def test_attention_is_never_split_because_it_reads_the_weights_of_its_parts() -> None:
    model = nn.Sequential(nn.MultiheadAttention(64, 2), nn.Linear(4, 4))
    assert names(plan(model, wrap_min_params=1000)) == ["", "0"]


def test_inner_blocks_are_units_inside_of_outer_ones() -> None:
    policy = plan(wrap_blocks=("Block", "Linear"))
    assert names(policy)[:4] == ["", "blocks.0", "blocks.0.mlp.0", "blocks.0.mlp.1"]
    assert policy.params == sum(param.numel() for param in Model().parameters())


@pytest.mark.parametrize("config", [{"wrap_min_params": 500}, {"wrap_blocks": ("Linear",)}])
def test_modules_that_share_a_parameter_stay_together_in_the_root(config: dict[str, Any]) -> None:
    policy = plan(Model(is_tied=True), **config)
    assert not {"words", "head"} & set(names(policy))
    assert any("words.weight and head.weight are one parameter" in note for note in policy.notes)
    assert policy.params == sum(param.numel() for param in Model(is_tied=True).parameters())


def test_the_whole_model_as_one_unit_is_noted_on_several_ranks_only() -> None:
    assert any("the whole model is one unit" in note for note in plan().notes)
    assert plan(world=1).notes == ()


@pytest.mark.parametrize(
    ("kind", "mesh", "is_resharded"),
    [
        ("full_shard", (4,), True),
        ("shard_grad_op", (4,), False),
        ("hybrid_shard", (2, 2), True),
        ("no_shard", (4, 1), False),
    ],
)
def test_each_sharding_has_its_mesh_and_its_share_of_bytes(
    kind: str, mesh: tuple[int, ...], is_resharded: bool
) -> None:
    policy = plan(fsdp_sharding=kind, wrap_blocks=("Block",))
    whole = sum(unit.size_bytes for unit in policy.units)
    assert (policy.mesh, policy.reshard_after_forward) == (mesh, is_resharded)
    assert policy.bytes_per_rank == pytest.approx(whole / mesh[-1], rel=0.05)


def test_nodes_of_different_sizes_cannot_share_copies() -> None:
    with pytest.raises(InputError, match="3 ranks are not a multiple of the 2"):
        plan(world=3, fsdp_sharding="hybrid_shard")


@pytest.mark.parametrize(
    ("shape", "size_bytes"), [((10, 3), 36), ((2, 3), 12), ((), 4), ((0, 3), 0), ((8,), 8)]
)
def test_rows_are_dealt_out_in_equal_chunks(shape: tuple[int, ...], size_bytes: int) -> None:
    assert sharding.shard_bytes(torch.zeros(shape), 4) == size_bytes


def test_fp32_that_nobody_asked_for_casts_nothing() -> None:
    policy = plan()
    assert (policy.param_dtype, policy.reduce_dtype, policy.buffer_dtype) == (None, None, None)
    policy = plan(mixed_precision_policy="bf16", reduce_dtype="bf16")
    assert (policy.param_dtype, policy.reduce_dtype) == (torch.bfloat16, torch.bfloat16)
    assert (policy.buffer_dtype, policy.output_dtype) == (torch.float32, torch.float32)


def test_the_outermost_units_with_parts_are_recomputed() -> None:
    policy = plan(wrap_blocks=("Block", "Linear"), activation_checkpointing=True)
    assert policy.checkpointed == tuple(BLOCKS)


def test_batchnorm_without_synchronisation_is_noted() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    assert any("1 keeps its own statistics" in note for note in plan(model).notes)


def test_the_policy_prints_its_units_bytes_and_dtypes() -> None:
    said = str(plan(wrap_blocks=("Block",), mixed_precision_policy="bf16"))
    assert "full_shard on a mesh of 4: 4136 parameters in 4 units" in said
    assert "param_dtype bfloat16, reduce_dtype float32" in said
    assert "blocks.2" in said and "(root)" in said
