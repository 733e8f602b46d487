"""The command lines and config files of other launchers for one DistributedConfig. Pure.

    torchrun(["train.py", "--epochs", "20"], config, ranks_per_node=8)
    deepspeed_config(config, micro_batch=4)     # a dict; json.dumps it beside the script

A line is a list of words, for subprocess; for a person, `shlex.join(line)`. A script that uses this
package itself needs the launcher for its variables alone (`CONTRACT`). The config files are for
scripts that train through accelerate.Accelerator or deepspeed.initialize. There the framework
accumulates and the number stands in its file alone: a loop of that kind calls `engine.backward` and
`engine.step` and has no GradientAccumulator, or the two numbers would multiply.

Sources: torch.distributed.run; accelerate launch and its FSDP guide; deepspeed.ai, "DeepSpeed
Configuration JSON"; srun(1).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from boxcar.shared.errors import InputError
from boxcar.training.parallel.config import DistributedConfig

_TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

CONTRACT: dict[str, tuple[str, ...]] = {
    "torchrun": (*_TORCH, "GROUP_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    "accelerate": (*_TORCH, "ACCELERATE_MIXED_PRECISION"),
    "deepspeed": (*_TORCH[:3], "LOCAL_SIZE", *_TORCH[4:], "CROSS_RANK", "CROSS_SIZE"),
    "slurm": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NODEID", "SLURM_NODELIST"),
}
"""What each launcher sets in every rank; DistributedLauncher translates Slurm's to torchrun's."""


def torchrun(
    script: Sequence[str], config: DistributedConfig, ranks_per_node: int, job_id: str = "boxcar"
) -> list[str]:
    """The same line on every node; one node has its own rendezvous on a free port.

    `job_id` must be another one for each job whose nodes meet at one address.
    """
    line = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks_per_node}"]
    if config.num_nodes == 1:
        # Without the address ranks meet under the machine's own name, which may lead nowhere.
        return [*line, "--standalone", "--nnodes=1", "--local-addr=127.0.0.1", *script]
    return [
        *line,
        f"--nnodes={config.num_nodes}",
        f"--rdzv-id={job_id}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={config.master_addr}:{config.master_port}",
        *script,
    ]


def srun(script: Sequence[str], config: DistributedConfig, ranks_per_node: int) -> list[str]:
    """One task for each rank; the script calls DistributedLauncher, which translates."""
    return [
        "srun",
        f"--nodes={config.num_nodes}",
        f"--ntasks-per-node={ranks_per_node}",
        # Else the other ranks wait for one that has died until their time-out.
        "--kill-on-bad-exit=1",
        sys.executable,
        *script,
    ]


def accelerate(script: Sequence[str], config_file: str) -> list[str]:
    """With the file of `accelerate_config`, as JSON; accelerate reads YAML and JSON by the name.

    Without a file accelerate takes the one in the user's home, or a single process.
    """
    if not config_file.endswith((".json", ".yaml", ".yml")):
        raise InputError(f"accelerate knows a file's format by .json or .yaml, found {config_file}")
    start = [sys.executable, "-m", "accelerate.commands.launch"]
    return [*start, "--config_file", config_file, *script]


def accelerate_config(
    config: DistributedConfig, ranks_per_node: int, deepspeed_file: str | None = None
) -> dict[str, Any]:
    """The content of the file. One for each node: machine_rank is config.node_rank.

    With `deepspeed_file` all of precision, sharding and accumulation is in that one, because
    accelerate ignores its own where both are given. Raises InputError for a sharding that its
    FSDP2 has no word for.
    """
    config.check()
    world = config.num_nodes * ranks_per_node
    file = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if world > 1 else "NO",
        "num_machines": config.num_nodes,
        "num_processes": world,
        "machine_rank": config.node_rank,
        "main_process_ip": config.master_addr if config.num_nodes > 1 else None,
        # 0: a free one.
        "main_process_port": config.master_port or 0,
        "mixed_precision": _word(config.precision.param_dtype).replace("fp32", "no"),
        "main_training_function": "main",
    }
    if deepspeed_file is not None:
        del file["mixed_precision"]
        plugin = {"deepspeed_config_file": deepspeed_file, "zero3_init_flag": False}
        return file | {"distributed_type": "DEEPSPEED", "deepspeed_config": plugin}
    if config.strategy == "fsdp":
        return file | {"distributed_type": "FSDP", "fsdp_config": _accelerate_fsdp(config)}
    return file


def _accelerate_fsdp(config: DistributedConfig) -> dict[str, Any]:
    reshards = {"full_shard": True, "shard_grad_op": False}
    if config.fsdp_sharding not in reshards:
        raise InputError(
            f"accelerate's FSDP2 has no fsdp_sharding {config.fsdp_sharding!r}: write 'full_shard' "
            "or 'shard_grad_op', or start FSDPWrapper by torchrun"
        )
    wrap: dict[str, Any] = {
        "fsdp_auto_wrap_policy": "SIZE_BASED_WRAP",
        "fsdp_min_num_params": config.wrap_min_params,
    }
    if config.wrap_blocks:
        wrap = {
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_transformer_layer_cls_to_wrap": ",".join(config.wrap_blocks),
        }
    return wrap | {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": reshards[config.fsdp_sharding],
        "fsdp_offload_params": config.cpu_offload,
        "fsdp_activation_checkpointing": config.activation_checkpointing,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    }


def deepspeed(
    script: Sequence[str],
    config: DistributedConfig,
    gpus: Sequence[int],
    master_port: int,
    hostfile: str | None = None,
) -> list[str]:
    """`gpus`: their numbers on each node. `master_port`: this job's own, from launcher.free_port.

    Several nodes need a hostfile of lines `node0 slots=8`; deepspeed reaches them by ssh.
    """
    if config.num_nodes > 1 and hostfile is None:
        raise InputError(f"deepspeed needs a hostfile for {config.num_nodes} nodes")
    # With --num_gpus it takes the first ones, whatever CUDA_VISIBLE_DEVICES says.
    where = ["--include", "localhost:" + ",".join(str(gpu) for gpu in gpus)]
    if hostfile is not None:
        where = ["--hostfile", hostfile, "--num_nodes", str(config.num_nodes)]
        where += ["--num_gpus", str(len(gpus)), "--master_addr", config.master_addr]
    start = [sys.executable, "-m", "deepspeed.launcher.runner"]
    # Else it adds an argument --local_rank to the script's, which many do not know.
    return [*start, *where, "--master_port", str(master_port), "--no_local_rank", *script]


def deepspeed_config(
    config: DistributedConfig,
    micro_batch: int,
    clip_norm: float | None = None,
    ranks_per_node: int = 1,
) -> dict[str, Any]:
    """The content of ds_config.json; `micro_batch`: samples per GPU and backward.

    ddp and no_shard are ZeRO stage 0, shard_grad_op 2, full_shard 3, hybrid_shard 3 with weights
    gathered inside a node. fp16 has a dynamic loss scale, inside of engine.backward.
    """
    config.check()
    precision = config.precision
    file: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": config.gradient_accumulation_steps,
        "zero_optimization": _zero(config, ranks_per_node),
        "bf16": {"enabled": precision.param_dtype == torch.bfloat16},
        "fp16": {"enabled": precision.param_dtype == torch.float16},
        "communication_data_type": _word(precision.reduce_dtype),
    }
    return file | ({"gradient_clipping": clip_norm} if clip_norm is not None else {})


def _zero(config: DistributedConfig, ranks_per_node: int) -> dict[str, Any]:
    stages = {"no_shard": 0, "shard_grad_op": 2, "full_shard": 3, "hybrid_shard": 3}
    zero: dict[str, Any] = {"stage": 0}
    if config.strategy == "fsdp":
        zero["stage"] = stages[config.fsdp_sharding]
        if config.fsdp_sharding == "hybrid_shard":
            zero["zero_hpz_partition_size"] = ranks_per_node
    if config.cpu_offload and zero["stage"]:
        zero["offload_optimizer"] = {"device": "cpu"}
        if zero["stage"] == 3:
            zero["offload_param"] = {"device": "cpu"}
    return zero


def _word(dtype: torch.dtype) -> str:
    return {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
