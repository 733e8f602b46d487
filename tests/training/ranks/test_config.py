from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

from boxcar.shared.errors import InputError
from boxcar.training.ranks.config import DistributedConfig

GB = 10**9


def only_problem(*, world: int | None = None, device_type: str | None = None, **fields: Any) -> str:
    (problem,) = DistributedConfig(**fields).problems(world, device_type)
    return problem


def test_the_default_is_fine_everywhere() -> None:
    for world in (1, 8):
        for device_type in ("cpu", "cuda"):
            DistributedConfig().check(world, device_type)


def test_every_problem_is_listed_at_once() -> None:
    config = DistributedConfig(
        strategy="dpp", mixed_precision_policy="bfloat16", gradient_accumulation_steps=0
    )
    with pytest.raises(InputError) as caught:
        config.check()
    assert caught.value.problems == (
        "DistributedConfig: strategy 'dpp' is not known; did you mean 'ddp'?",
        "DistributedConfig: mixed_precision_policy 'bfloat16' is not known; did you mean 'bf16'?",
        "DistributedConfig: gradient_accumulation_steps should be a whole number, 1 or more, found 0",  # noqa: E501
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"strategy": "zero"}, "write one of ddp, fsdp, single"),
        ({"backend": "ncll"}, "did you mean 'nccl'?"),
        ({"strategy": "fsdp", "fsdp_sharding": "FULL_SHARD"}, "did you mean 'full_shard'?"),
        ({"reduce_dtype": "float32"}, "reduce_dtype 'float32' is not known"),
        ({"wrap_blocks": "Block"}, "should be class names as ('Block', 'Head')"),
        ({"gradient_accumulation_steps": True}, "1 or more, found True"),
        ({"master_port": "auto"}, "1 to 65535, or None for a free one, found 'auto'"),
        ({"batch_size": 0}, "batch_size should be a whole number, 1 or more, found 0"),
        ({"master_port": 70000}, "found 70000"),
        ({"timeout_s": 0}, "seconds above 0"),
        ({"timeout_s": float("nan")}, "seconds above 0"),
        ({"node_rank": 1}, "node_rank should be 0 to 0 with num_nodes 1, found 1"),
        ({"strategy": "fsdp", "fsdp_sharding": "hybrid_shard"}, "write fsdp_sharding='full_shard'"),
        ({"cpu_offload": True}, "needs strategy 'fsdp', found 'ddp'"),
        ({"fsdp_sharding": "shard_grad_op"}, "needs strategy 'fsdp'"),
        ({"strategy": "fsdp", "find_unused_parameters": True}, "leave it out"),
        ({"buffer_dtype": "bf16"}, "buffers keep the model's own dtype"),
        ({"activation_checkpointing": True}, "needs wrap_blocks"),
    ],
)
def test_a_wrong_field_is_told_with_what_to_write(fields: dict[str, Any], told: str) -> None:
    assert told in only_problem(**fields)


def test_nodes_need_an_address_and_a_port_that_all_of_them_know() -> None:
    problems = DistributedConfig(num_nodes=2).problems(world=3)
    assert [problem.split()[0] for problem in problems] == ["master_addr", "2", "3"]
    there = DistributedConfig(num_nodes=2, node_rank=1, master_addr="10.0.0.1", master_port=29500)
    assert there.problems(world=16) == []


def test_what_only_gpus_can_do_is_refused_on_a_cpu_machine_alone() -> None:
    assert "leave it out on the CPU" in only_problem(reduce_dtype="bf16", device_type="cpu")
    config = DistributedConfig(
        backend="nccl", mixed_precision_policy="fp16", reduce_dtype=torch.bfloat16
    )
    assert config.problems(8, "cuda") == []


def test_single_on_several_ranks_is_refused() -> None:
    assert "train the same cell 4 times" in only_problem(strategy="single", world=4)


def test_what_has_no_effect_is_noted_and_not_refused() -> None:
    (note,) = DistributedConfig(strategy="fsdp").notes(1, "cpu")
    assert "shards nothing" in note
    (note,) = DistributedConfig(backend="gloo").notes(2, "cuda")
    assert "'nccl' is faster" in note
    (note,) = DistributedConfig(backend="nccl").notes(2, "cpu")
    assert note == "no GPU here: gloo takes the place of nccl"
    (note,) = DistributedConfig(mixed_precision_policy="fp16").notes(2, "cuda")
    assert "GradScaler('cuda')" in note
    assert DistributedConfig().notes(8, "cuda") == []


def test_sixteen_bits_compute_and_32_bits_sum_and_keep() -> None:
    assert DistributedConfig().precision == (torch.float32,) * 3
    bf16 = DistributedConfig(mixed_precision_policy="bf16").precision
    assert bf16 == (torch.bfloat16, torch.float32, torch.float32)
    fp16 = DistributedConfig(mixed_precision_policy="fp16", reduce_dtype=torch.bfloat16).precision
    assert fp16 == (torch.float16, torch.bfloat16, torch.float32)


@pytest.mark.parametrize(
    ("params", "gpus", "memory_bytes", "strategy", "sharding"),
    [
        # The rows of the table.
        (1_000_000, 1, 24 * GB, "single", "full_shard"),
        (1_000_000, 8, 24 * GB, "single", "full_shard"),
        (1_000_000_000, 2, 24 * GB, "ddp", "full_shard"),
        (3_000_000_000, 4, 40 * GB, "fsdp", "shard_grad_op"),
        (7_000_000_000, 8, 80 * GB, "fsdp", "full_shard"),
        (7_000_000_000, 8, 40 * GB, "fsdp", "full_shard"),
        # A size that its row's GPUs hold and these do not.
        (1_000_000_000, 2, 16 * GB, "fsdp", "shard_grad_op"),
        (1_000_000_000, 4, 6 * GB, "fsdp", "full_shard"),
        (3_000_000_000, 8, 12 * GB, "fsdp", "full_shard"),
    ],
)
def test_a_preset_is_the_tables_or_the_next_that_fits(
    params: int, gpus: int, memory_bytes: int, strategy: str, sharding: str
) -> None:
    config = DistributedConfig.for_size(params, gpus, memory_bytes)
    assert (config.strategy, config.fsdp_sharding) == (strategy, sharding)
    assert not config.cpu_offload
    assert config.problems(gpus if strategy != "single" else 1, "cuda") == []


def test_what_fits_nowhere_is_offloaded_and_checkpointed() -> None:
    for gpus in (1, 2):
        config = DistributedConfig.for_size(7_000_000_000, gpus, 24 * GB, wrap_blocks=["Block"])
        assert (config.strategy, config.cpu_offload) == ("fsdp", True)
        assert config.activation_checkpointing
        assert config.problems(gpus, "cuda") == []


def test_activations_are_recomputed_only_where_memory_is_tight() -> None:
    roomy = DistributedConfig.for_size(7_000_000_000, 8, 80 * GB, wrap_blocks=["Block"])
    tight = DistributedConfig.for_size(1_000_000_000, 2, 24 * GB, wrap_blocks=["Block"])
    assert (roomy.activation_checkpointing, tight.activation_checkpointing) == (False, True)


def test_a_port_may_be_text() -> None:
    assert DistributedConfig(master_port="29500").master_port == 29500


def test_it_can_be_changed_until_it_is_used() -> None:
    config = DistributedConfig()
    config.strategy = "fsdp"
    config.check()
    with pytest.raises(InputError, match="no field 'strategie'; did you mean 'strategy'"):
        config.strategie = "ddp"  # type: ignore[attr-defined]
    config.hold()
    config.strategy = "fsdp"  # the same
    with pytest.raises(InputError, match="strategy was changed after the ranks joined"):
        config.strategy = "ddp"


def test_blocks_are_said_by_class_by_name_or_in_groups() -> None:
    policy = functools.partial(
        transformer_auto_wrap_policy, transformer_layer_cls={nn.TransformerEncoderLayer}
    )
    for said in (nn.TransformerEncoderLayer, [nn.TransformerEncoderLayer], policy):
        assert DistributedConfig(wrap_blocks=said).wrap_blocks == ("TransformerEncoderLayer",)
    grouped = DistributedConfig(strategy="fsdp", wrap_blocks=("Block", ["head_a", nn.Linear]))
    assert grouped.wrap_blocks == ("Block", ("head_a", "Linear"))
    grouped.check()
