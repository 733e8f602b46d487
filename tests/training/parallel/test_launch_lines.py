from __future__ import annotations

import json
import sys

import pytest

from boxcar.shared.errors import InputError
from boxcar.training.parallel import launch_lines
from boxcar.training.parallel.config import DistributedConfig

SCRIPT = ["train.py", "--epochs", "2"]
ALONE = DistributedConfig()
NODES = DistributedConfig(num_nodes=2, node_rank=1, master_addr="10.0.0.1", master_port=29500)


def test_one_node_meets_itself_on_a_free_port() -> None:
    line = launch_lines.torchrun(SCRIPT, ALONE, 4)
    assert line[:3] == [sys.executable, "-m", "torch.distributed.run"]
    assert {"--standalone", "--nnodes=1", "--nproc-per-node=4"} < set(line)
    assert line[-3:] == SCRIPT


def test_all_nodes_have_the_same_line_and_meet_at_one_address() -> None:
    line = launch_lines.torchrun(SCRIPT, NODES, 8, job_id="7")
    first = DistributedConfig(num_nodes=2, master_addr="10.0.0.1", master_port=29500)
    assert line == launch_lines.torchrun(SCRIPT, first, 8, job_id="7")
    assert {"--nnodes=2", "--rdzv-id=7", "--rdzv-endpoint=10.0.0.1:29500"} < set(line)
    assert "--standalone" not in line


def test_srun_starts_a_task_for_each_rank_and_ends_them_together() -> None:
    line = launch_lines.srun(SCRIPT, NODES, 8)
    assert {"--nodes=2", "--ntasks-per-node=8", "--kill-on-bad-exit=1"} < set(line)
    assert line[-4:] == [sys.executable, *SCRIPT]


def test_accelerate_is_always_given_its_file() -> None:
    line = launch_lines.accelerate(SCRIPT, "acc.json")
    assert line[line.index("--config_file") + 1] == "acc.json"
    with pytest.raises(InputError, match=r"\.json or \.yaml, found acc.cfg"):
        launch_lines.accelerate(SCRIPT, "acc.cfg")


def test_accelerates_file_says_how_many_and_how_precise() -> None:
    file = launch_lines.accelerate_config(DistributedConfig(mixed_precision_policy="bf16"), 8)
    assert (file["distributed_type"], file["num_processes"]) == ("MULTI_GPU", 8)
    assert (file["mixed_precision"], file["main_process_port"]) == ("bf16", 0)
    there = launch_lines.accelerate_config(NODES, 8)
    assert (there["num_processes"], there["machine_rank"], there["main_process_ip"]) == (
        *(16, 1),
        "10.0.0.1",
    )
    assert launch_lines.accelerate_config(ALONE, 1)["distributed_type"] == "NO"
    json.dumps([file, there])


def test_accelerates_file_shards_by_blocks_or_by_size() -> None:
    config = DistributedConfig(
        strategy="fsdp", fsdp_sharding="shard_grad_op", wrap_blocks=("Block", "Head")
    )
    fsdp = launch_lines.accelerate_config(config, 8)["fsdp_config"]
    assert fsdp["fsdp_transformer_layer_cls_to_wrap"] == "Block,Head"
    assert (fsdp["fsdp_version"], fsdp["fsdp_reshard_after_forward"]) == (2, False)
    fsdp = launch_lines.accelerate_config(DistributedConfig(strategy="fsdp"), 8)["fsdp_config"]
    assert fsdp["fsdp_auto_wrap_policy"] == "SIZE_BASED_WRAP"
    with pytest.raises(InputError, match="no fsdp_sharding 'no_shard'"):
        launch_lines.accelerate_config(
            DistributedConfig(strategy="fsdp", fsdp_sharding="no_shard"), 8
        )


def test_with_deepspeed_precision_and_accumulation_stand_in_its_file_alone() -> None:
    config = DistributedConfig(
        strategy="fsdp", gradient_accumulation_steps=4, mixed_precision_policy="bf16"
    )
    file = launch_lines.accelerate_config(config, 8, deepspeed_file="ds.json")
    assert file["distributed_type"] == "DEEPSPEED"
    assert "accumulation" not in json.dumps(file) and "mixed_precision" not in file
    ds = launch_lines.deepspeed_config(config, micro_batch=2, clip_norm=1.0)
    assert (ds["gradient_accumulation_steps"], ds["train_micro_batch_size_per_gpu"]) == (4, 2)
    assert (ds["bf16"]["enabled"], ds["fp16"]["enabled"]) == (True, False)
    assert (ds["communication_data_type"], ds["gradient_clipping"]) == ("fp32", 1.0)


@pytest.mark.parametrize(
    ("config", "zero"),
    [
        (ALONE, {"stage": 0}),
        (DistributedConfig(strategy="fsdp", fsdp_sharding="no_shard"), {"stage": 0}),
        (DistributedConfig(strategy="fsdp", fsdp_sharding="shard_grad_op"), {"stage": 2}),
        (DistributedConfig(strategy="fsdp"), {"stage": 3}),
        (
            DistributedConfig(strategy="fsdp", cpu_offload=True),
            {
                "stage": 3,
                "offload_optimizer": {"device": "cpu"},
                "offload_param": {"device": "cpu"},
            },
        ),
        (
            DistributedConfig(strategy="fsdp", fsdp_sharding="shard_grad_op", cpu_offload=True),
            {"stage": 2, "offload_optimizer": {"device": "cpu"}},
        ),
        (
            DistributedConfig(
                strategy="fsdp",
                fsdp_sharding="hybrid_shard",
                num_nodes=2,
                master_addr="a",
                master_port=29500,
            ),
            {"stage": 3, "zero_hpz_partition_size": 8},
        ),
    ],
)
def test_the_sharding_is_a_zero_stage(config: DistributedConfig, zero: dict[str, object]) -> None:
    found = launch_lines.deepspeed_config(config, 1, ranks_per_node=8)["zero_optimization"]
    assert found == zero


def test_deepspeed_takes_the_named_gpus_and_a_port_of_its_own() -> None:
    line = launch_lines.deepspeed(SCRIPT, ALONE, gpus=[2, 3], master_port=31000)
    assert line[line.index("--include") + 1] == "localhost:2,3"
    assert line[line.index("--master_port") + 1] == "31000"
    assert "--no_local_rank" in line and line[-3:] == SCRIPT
    with pytest.raises(InputError, match="needs a hostfile for 2 nodes"):
        launch_lines.deepspeed(SCRIPT, NODES, [0], 31000)
    line = launch_lines.deepspeed(SCRIPT, NODES, range(8), 31000, hostfile="hosts")
    assert line[line.index("--num_gpus") + 1] == "8"


def test_every_launcher_gives_a_place() -> None:
    for launcher in ("torchrun", "accelerate", "deepspeed"):
        contract = set(launch_lines.CONTRACT[launcher])
        assert {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} < contract
        assert contract & {"LOCAL_WORLD_SIZE", "LOCAL_SIZE"}
