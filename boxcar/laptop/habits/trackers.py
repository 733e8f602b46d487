"""Trackers that a script imports, and how a cell lives without their server. Data: one row each.

Read from wandb 0.2x, swanlab 0.10, mlflow 3.18, trackio 0.43 and comet_ml 3.58.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Tracker:
    """Its offline mode, with what it then leaves; or the `secret` without which it does not run."""

    name: str
    env: tuple[tuple[str, str], ...] = ()
    collect: tuple[str, ...] = ()
    secret: str = ""


_ROWS = (
    Tracker("wandb", (("WANDB_MODE", "offline"),), ("wandb/",)),
    Tracker("swanlab", (("SWANLAB_MODE", "offline"),), ("swanlog/",)),
    # Its default is a database in the folder where the script was started, which cells would share.
    Tracker(
        "mlflow", (("MLFLOW_TRACKING_URI", "sqlite:///{out}/mlflow.db"),), ("mlflow.db", "mlruns/")
    ),
    Tracker("trackio", (("TRACKIO_DIR", "{out}/trackio"),), ("trackio/",)),
    # COMET_START_ONLINE is heeded by comet_ml.start alone, and not by Experiment.
    Tracker("comet_ml", secret="COMET_API_KEY"),
)


def of(imports: Collection[str]) -> Iterator[Tracker]:
    return (row for row in _ROWS if row.name in imports)
