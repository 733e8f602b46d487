"""Offline runs of Weights & Biases, one folder for each cell, for `wandb sync`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.common.units import distinct
from boxcar.laptop.trackers import exported_cell
from boxcar.laptop.trackers.exported_cell import ExportedCell

if TYPE_CHECKING:
    import wandb

FOLDER = "wandb"
# Its own columns; what else has such a name is dropped without a word.
_OWN = ("_step", "_runtime", "_timestamp", "_wandb")


def write(folder: Path, cell: ExportedCell) -> str:
    import wandb

    def make(partial: Path) -> Path:
        run = wandb.init(
            project=cell.run,
            name=cell.name,
            id=cell.id,
            group=cell.group,
            tags=_tags(cell),
            config=cell.told,
            mode="offline",
            dir=str(partial),
            settings=_settings(partial),
        )
        names = dict(zip(cell.curves, distinct(cell.curves, _OWN), strict=True))
        for point in cell.points:
            values = {names[key]: value for key, value in point.values.items()}
            # Without it all of a night lies in the second in which it is exported.
            run.log({**values, "_timestamp": point.at}, step=point.step)
        run.summary.update(cell.finals)
        run.finish()
        return next((partial / FOLDER).glob(f"offline-run-*-{cell.id}"))

    before = (folder / FOLDER).glob(f"offline-run-*-{cell.id}")
    return exported_cell.put_folder(folder, make, lambda name: f"{FOLDER}/{name}", before)


def _tags(cell: ExportedCell) -> list[str]:
    """W&B takes tags of 1 to 64 characters."""
    named = {"run": cell.run, "seed": f"seed={cell.seed}" if cell.seed else ""}
    return [tag[:64] for tag in (*named.values(), "boxcar") if tag]


def _settings(partial: Path) -> wandb.Settings:
    """Nothing of this machine is part of a cell that another one has trained."""
    import wandb

    return wandb.Settings(
        root_dir=str(partial),
        silent=True,
        console="off",
        disable_git=True,
        save_code=False,
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
