"""A box that is lost in the middle: the training goes on on a new one where it had saved."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from living import kill_all
from tiny_project import TinyProject

HABITS = Path(__file__).parents[2] / "examples" / "habits"
BOX = "box-a"
# The first copy is made a minute after the start.
EPOCHS, SECONDS_A_STEP = 200, 0.02


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(tmp_path)


@pytest.mark.projects
def test_mmengine_resumes_on_a_new_box_from_what_was_put_back(tmp_path: Path) -> None:
    """It reads a file beside its checkpoints that names the last one, and that file is gone."""
    if importlib.util.find_spec("mmengine") is None or importlib.util.find_spec("sklearn") is None:
        pytest.skip("not installed: mmengine, scikit-learn")
    root = tmp_path / "mm"
    shutil.copytree(HABITS / "mmengine_runner", root)
    _make_slow(root)
    project = TinyProject(root, "mm")
    project.boxcar("init", "--yes").ended(0)
    (cell,) = [one["cell"] for one in project.boxcar("plan", "--json").ended(0).document["cells"]]
    project.boxcar("smoke").ended(0)
    project.boxcar("launch").ended(0)
    project.wait_for("a copy of a checkpoint", lambda: _copies(project))
    kill_all(project.local)
    shutil.rmtree(project.box(BOX))
    assert _copies(project)
    project.boxcar("launch").ended(0)
    log = project.box(BOX) / "cells" / cell / f"{cell}.log"
    project.wait_for(
        "an epoch on the new box", lambda: log.exists() and "Epoch(train)" in log.read_text()
    )
    epochs = re.findall(r"Epoch\(train\) +\[(\d+)\]", log.read_text())
    assert int(epochs[0]) > 1, log.read_text()


def _make_slow(root: Path) -> None:
    for path, before, after in (
        (root / "digits.py", "time.sleep(0.01)", f"time.sleep({SECONDS_A_STEP})"),
        (root / "configs/digits.py", "max_epochs=12", f"max_epochs={EPOCHS}"),
    ):
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))


def _copies(project: TinyProject) -> list[Path]:
    """Whole ones: what names them is written behind them."""
    return [*project.tier.rglob("cells/*/resume/resume.json")]
