"""A folder of code alone, lived from `init` to `down`: nobody writes a job or a queue line for it.

init, plan, smoke, launch; a SIGKILL of everything on the box in the middle of the first cell;
launch again, pull, verify, down.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml
from living import kill_all, living
from proof import assert_as_manifest, assert_nothing_runs, assert_published_once, assert_pulled
from tiny_project import TinyProject

BOX = "box-a"
# What a person knows of such a project and no source says.
_LEFT_BEHIND = ("job.yaml", "queues", "results", ".boxcar", "__pycache__")


def live(source: Path, root: Path, *more: Path, silent: str = "") -> list[str]:
    """The names of its cells, each verified. `root` is a new folder, `more` are files beside it.

    `silent` is the name of a script that says nothing while it runs.
    """
    shutil.copytree(source, root, ignore=shutil.ignore_patterns(*_LEFT_BEHIND))
    for file in more:
        shutil.copy(file, root)
    project = TinyProject(root, root.name.replace("_", "-"))
    project.boxcar("init", "--yes").ended(0)
    plan = project.boxcar("plan", "--json").ended(0).document
    cells = [cell["cell"] for cell in plan["cells"]]
    can_be_short = "smoke" in yaml.safe_load((root / "job.yaml").read_text())
    project.boxcar("smoke").ended(0 if can_be_short else 2)
    project.boxcar("launch").ended(0)
    _kill_in_the_middle_of(project, cells[0], silent)
    project.boxcar("launch").ended(0)
    project.wait_for_agents()
    project.boxcar("pull").ended(0)
    verified = project.boxcar("verify", "--json").ended(0).document
    assert_published_once(project, cells)
    assert_pulled(project, cells)
    for cell in cells:
        assert_as_manifest(project.results / "cells" / cell)
    project.boxcar("down", "--approve", verified["digest"]).ended(0)
    assert_nothing_runs(project)
    return cells


def log(project: TinyProject, cell: str) -> str:
    return (project.results / "cells" / cell / f"{cell}.log").read_text()


def _kill_in_the_middle_of(project: TinyProject, cell: str, silent: str) -> None:
    """Once it has said something; of a script that says nothing, once it is there."""
    path = project.box(BOX) / "cells" / cell / f"{cell}.log"

    def is_at_work() -> bool:
        if silent:
            return any(silent in process.words for process in living(project.box(BOX)))
        return path.exists() and len(path.read_text().splitlines()) > 3

    project.wait_for(f"{cell} at work", is_at_work)
    kill_all(project.local)
