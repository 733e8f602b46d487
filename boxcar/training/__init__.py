"""What a train script may import, and the check that loads what it left behind.

    from boxcar.training import Checkpointer, DDPWrapper, DistributedConfig, progress

Names are imported when they are asked for, so `progress` needs no torch. It all travels to the box
as `training-<digest>.zip`, on the training's PYTHONPATH, together with boxcar.shared and nothing
else. Without Boxcar's environment variables it works beside the script.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boxcar.training.cache.latent_cache import Fingerprint as Fingerprint
    from boxcar.training.cache.latent_cache import LatentCache as LatentCache
    from boxcar.training.checkpoint.cadence import Cadence as Cadence
    from boxcar.training.checkpoint.checkpointer import Checkpointer as Checkpointer
    from boxcar.training.checkpoint.training_state import TrainingState as TrainingState
    from boxcar.training.checkpoint.training_state import capture_rng as capture_rng
    from boxcar.training.checkpoint.training_state import restore_rng as restore_rng
    from boxcar.training.data.loader import RankAwareDataLoader as RankAwareDataLoader
    from boxcar.training.hang.stall_watch import StallWatch as StallWatch
    from boxcar.training.loop import Training as Training
    from boxcar.training.parallel.accumulate import GradientAccumulator as GradientAccumulator
    from boxcar.training.parallel.compile_guard import compile_model as compile_model
    from boxcar.training.parallel.ddp import DDPWrapper as DDPWrapper
    from boxcar.training.parallel.fsdp import FSDPWrapper as FSDPWrapper
    from boxcar.training.parallel.learning_rate import scaled_lr as scaled_lr
    from boxcar.training.parallel.learning_rate import warm_up as warm_up
    from boxcar.training.parallel.sharding import ShardingPolicy as ShardingPolicy
    from boxcar.training.ranks.config import DistributedConfig as DistributedConfig
    from boxcar.training.ranks.launcher import DistributedLauncher as DistributedLauncher
    from boxcar.training.ranks.preemption import Preemption as Preemption
    from boxcar.training.ranks.ranks import Ranks as Ranks

_HOMES = {
    "Cadence": "checkpoint.cadence",
    "Checkpointer": "checkpoint.checkpointer",
    "DDPWrapper": "parallel.ddp",
    "DistributedConfig": "ranks.config",
    "DistributedLauncher": "ranks.launcher",
    "FSDPWrapper": "parallel.fsdp",
    "Fingerprint": "cache.latent_cache",
    "GradientAccumulator": "parallel.accumulate",
    "LatentCache": "cache.latent_cache",
    "Preemption": "ranks.preemption",
    "RankAwareDataLoader": "data.loader",
    "Ranks": "ranks.ranks",
    "ShardingPolicy": "parallel.sharding",
    "StallWatch": "hang.stall_watch",
    "Training": "loop",
    "TrainingState": "checkpoint.training_state",
    "capture_rng": "checkpoint.training_state",
    "compile_model": "parallel.compile_guard",
    "restore_rng": "checkpoint.training_state",
    "scaled_lr": "parallel.learning_rate",
    "warm_up": "parallel.learning_rate",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
