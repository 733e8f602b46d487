"""Offline runs of SwanLab, one folder for each cell, for `swanlab sync`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.trackers import whole_folder
from boxcar.laptop.trackers.exported_cell import ExportedCell

if TYPE_CHECKING:
    import swanlab

FOLDER = "swanlog"


def write(folder: Path, cell: ExportedCell) -> str:
    import swanlab

    def make(partial: Path) -> Path:
        swanlab.init(
            mode="offline",
            log_dir=str(partial),
            project=cell.run,
            name=cell.name,
            id=cell.id,
            group=cell.group,
            tags=[*cell.tags.values(), "boxcar"],
            config={**cell.config, **cell.proof},
            settings=_settings(),
        )
        for point in cell.points:
            swanlab.log(dict(point.values), step=point.step)
        if cell.finals:
            swanlab.log(cell.finals, step=cell.last_step)
        swanlab.finish()
        return next(partial.glob(f"run-*-{cell.id}"))

    before = (folder / FOLDER).glob(f"run-*-{cell.id}")
    return whole_folder.put(folder, make, lambda name: f"{FOLDER}/{name}", before)


def _settings() -> swanlab.Settings:
    """Nothing of this machine is part of a cell that another one has trained."""
    import swanlab

    off = swanlab.Settings.Probe(
        hardware=False, runtime=False, requirements=False, git=False, swanlab=False, monitor=False
    )
    return swanlab.Settings(mode="offline", interactive=False, probe=off)
