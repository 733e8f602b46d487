"""Trackers that a script imports, and how a cell lives without their server. Data: one row each.

Read from wandb 0.31, swanlab 0.10, mlflow 3.17, trackio 0.43 and comet_ml 3.58.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Tracker:
    """Its offline mode, with what it then leaves; the `secret` of its server; and `more` variables
    by which a job may say how it is used. `asks`: with none of them it ends the training.
    """

    name: str
    env: tuple[tuple[str, str], ...] = ()
    collect: tuple[str, ...] = ()
    secret: str = ""
    more: tuple[str, ...] = ()
    asks: bool = False

    @property
    def modes(self) -> frozenset[str]:
        return frozenset([*dict(self.env), *self.more])

    @property
    def lines(self) -> str:
        """What a person may write in job.yaml."""
        modes = [f'env: {{{name}: "{value}"}}' for name, value in self.env]
        return " or ".join([*modes, *[f"secrets: [{self.secret}]"] * bool(self.secret)])


_ROWS = (
    Tracker(
        "wandb",
        (("WANDB_MODE", "offline"),),
        ("wandb/",),
        "WANDB_API_KEY",
        more=("WANDB_DISABLED",),
        asks=True,
    ),
    Tracker("swanlab", (("SWANLAB_MODE", "offline"),), ("swanlog/",), "SWANLAB_API_KEY", asks=True),
    # Its default is a database in the folder where the script was started, which cells would share.
    Tracker(
        "mlflow", (("MLFLOW_TRACKING_URI", "sqlite:///{out}/mlflow.db"),), ("mlflow.db", "mlruns/")
    ),
    Tracker("trackio", (("TRACKIO_DIR", "{out}/trackio"),), ("trackio/",)),
    # comet_ml.start alone heeds that variable, and not Experiment: so it is not proposed.
    Tracker("comet_ml", secret="COMET_API_KEY", more=("COMET_START_ONLINE",), asks=True),
)


def trackers_of_script(imports: Collection[str]) -> Iterator[Tracker]:
    return (row for row in _ROWS if row.name in imports)
