"""Numbers that scripts report beside those that they are about."""

from __future__ import annotations

NOT_METRICS = (
    "step",
    "total_steps",
    "epoch",
    "at",
    "time",
    "epochs",
    "best_epoch",
    "seconds",
    "params",
    "world_size",
    # Of Ray, SB3, transformers and LLaMA-Factory: how far it was, and when.
    "current_steps",
    "global_step",
    "iter",
    "iteration",
    "iterations_since_restore",
    "pid",
    "time/iterations",
    "time/time_elapsed",
    "time/total_timesteps",
    "time_since_restore",
    "time_this_iter_s",
    "time_total_s",
    "timestamp",
    "timesteps",
    "total_flos",
    "total_timesteps",
    "training_iteration",
    "wall_time",
)
