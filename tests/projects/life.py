"""A project of this folder, lived from its job.yaml and queue alone: the one door to it.

plan, smoke, launch; a SIGKILL of everything on the box while its second cell is in the middle;
launch again, pull, verify, down.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import yaml
from living import kill_all
from proof import assert_as_manifest, assert_nothing_runs, assert_published_once, assert_pulled
from tiny_project import TinyProject

HERE = Path(__file__).parent
BOX, QUEUE = "box-a", "queue_1"
HELD_STEP, STEPS = 6, 12  # of pace.py, and of each script


def live(habit: str, folder: Path) -> dict[str, float]:
    """Each cell's learning rate, as its own result has it. `folder` is the test's own."""
    project = _copied(habit, folder / habit)
    plan = project.boxcar("plan", "--json").ended(0).document
    cells = [cell["cell"] for cell in plan["cells"]]
    project.boxcar("smoke").ended(0)
    _kill_in_the_middle_of(project, cells[1], folder)
    project.boxcar("launch").ended(0)
    project.wait_for_agents()
    project.boxcar("pull").ended(0)
    verified = project.boxcar("verify", "--json").ended(0).document
    assert_published_once(project, cells)
    assert_pulled(project, cells)
    assert {cell: _starts(project, cell) for cell in cells} == _expected(cells)
    project.boxcar("down", "--approve", verified["digest"]).ended(0)
    assert_nothing_runs(project)
    return {cell: _rate(project, cell) for cell in cells}


def _copied(habit: str, root: Path) -> TinyProject:
    shutil.copytree(HERE / habit, root)
    shutil.copy(HERE / "pace.py", root)
    if habit == "config_tree" and importlib.util.find_spec("hydra") is None:
        shutil.copy(HERE / "stand_in" / "hydra.py", root)
    return TinyProject(root, yaml.safe_load((root / "job.yaml").read_text())["name"])


def _kill_in_the_middle_of(project: TinyProject, cell: str, folder: Path) -> None:
    hold = folder / f"hold-{cell}"
    hold.touch()
    project.boxcar("launch").ended(0)
    log = project.box(BOX) / "cells" / cell / f"{cell}.log"
    project.wait_for(
        f"step {HELD_STEP} of {cell}",
        lambda: log.exists() and f"step {HELD_STEP}\n" in log.read_text(),
    )
    kill_all(project.local)
    hold.unlink()


def _starts(project: TinyProject, cell: str) -> list[int]:
    """Where each attempt of the cell began, by the published log."""
    log = (project.results / "cells" / cell / f"{cell}.log").read_text()
    return [int(line.rpartition(" ")[2]) for line in log.splitlines() if "start at" in line]


def _expected(cells: list[str]) -> dict[str, list[int]]:
    """The killed cell resumes where it had saved, and no cell at another one's checkpoint."""
    return {cell: [0, HELD_STEP - 1] if cell == cells[1] else [0] for cell in cells}


def _rate(project: TinyProject, cell: str) -> float:
    folder = project.results / "cells" / cell
    assert_as_manifest(folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert int(metrics["steps"]) == STEPS
    return float(metrics["lr"])
