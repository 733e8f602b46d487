"""Scripts that know nothing of Boxcar, from `init` to `down`, with a SIGKILL in the middle."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import from_init
import pytest
from living import kill_all

HERE = Path(__file__).parent
HABITS = HERE.parents[1] / "examples" / "habits"
# Each with the libraries that it stands on.
WITH_LIBRARIES = {
    "plain_argparse": ["torch"],
    "iterations": ["torch"],
    "hydra_lightning": ["torch", "hydra", "lightning", "sklearn"],
    "lightning_cli": ["torch", "lightning", "jsonargparse", "sklearn"],
    "hf_trainer": ["torch", "transformers", "accelerate", "safetensors"],
    "accelerate_loop": ["torch", "accelerate"],
    "sklearn_fit": ["sklearn", "joblib"],
    "runs_folders": ["torch"],
    "mmengine_runner": ["torch", "mmengine", "sklearn"],
    "torchvision_reference": ["torch", "torchvision"],
}
SILENT = {"sklearn_fit": "fit.py"}


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(tmp_path)


@pytest.mark.parametrize("habit", ["writes_beside", "gpt_config"])
def test_a_folder_without_a_job_is_lived_from_init_to_down(habit: str, tmp_path: Path) -> None:
    cells = from_init.live(HERE / habit, tmp_path / habit, HERE / "pace.py")
    assert cells


@pytest.mark.projects
@pytest.mark.parametrize("habit", WITH_LIBRARIES)
def test_a_script_on_a_library_is_lived_from_init_to_down(habit: str, tmp_path: Path) -> None:
    missing = [name for name in WITH_LIBRARIES[habit] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert from_init.live(HABITS / habit, tmp_path / habit, silent=SILENT.get(habit, ""))
