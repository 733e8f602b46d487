"""Offline runs of SwanLab, one folder for each cell, for `swanlab sync`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.common.units import distinct
from boxcar.laptop.trackers import exported_cell
from boxcar.laptop.trackers.exported_cell import ExportedCell

if TYPE_CHECKING:
    import swanlab

FOLDER = "swanlog"
_MOST_NAME = 240


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
            config=cell.told,
            settings=_settings(),
        )
        names = _names([*cell.curves, *cell.finals])
        for point in cell.points:
            values = {names[key]: value for key, value in point.values.items()}
            swanlab.log(values, step=point.step)
        if cell.finals:
            finals = {names[key]: value for key, value in cell.finals.items()}
            swanlab.log(finals, step=cell.last_step)
        swanlab.finish()
        return next(partial.glob(f"run-*-{cell.id}"))

    before = (folder / FOLDER).glob(f"run-*-{cell.id}")
    return exported_cell.put_folder(folder, make, lambda name: f"{FOLDER}/{name}", before)


def _names(keys: Collection[str]) -> dict[str, str]:
    """It trims a name by itself, and two that are alike then are one curve."""
    trimmed = [key.strip(" \t\n\r./")[:_MOST_NAME] or "_" for key in keys]
    return dict(zip(keys, distinct(trimmed), strict=True))


def _settings() -> swanlab.Settings:
    """Nothing of this machine is part of a cell that another one has trained."""
    import swanlab

    off = swanlab.Settings.Probe(
        hardware=False, runtime=False, requirements=False, git=False, swanlab=False, monitor=False
    )
    return swanlab.Settings(mode="offline", interactive=False, probe=off)
