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
)
