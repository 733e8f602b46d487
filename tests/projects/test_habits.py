"""Scripts in the habits of projects that nobody here wrote: none of them knows of Boxcar."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from life import live
from living import kill_all

# The cells of each project by the names that its lines give them, and what they vary.
WITHOUT_TORCH = {
    "writes_beside": ["imagenet_lr0.1", "imagenet_lr0.01", "slow"],
    "data_beside": ["unet_lr0.1", "unet_lr0.01", "slow"],
    "gpt_config": ["train_char", "train_char_learning_rate1e-2", "train_char_learning_rate1e-3"],
}
OTHERS = {
    "positions": ["high", "mid", "low"],
    "strict_resume": ["base", "base_lr0.01", "base_lr0.001"],
    "no_task": ["plain", "lr0.01", "slow"],
    "config_tree": ["mnist_noteone", "mnist_model.lr0.01_extraa-1-b-1-2", "slow"],
}
WITH_TORCH = {
    "step_files": ["toy_lr0.1", "toy_lr0.01", "toy_lr0.001"],
    "trainer_folders": [f"glue_learning_rate{rate}" for rate in ("0.1", "0.01", "0.001")],
}
RATES = [0.1, 0.01, 0.001]


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(tmp_path)


@pytest.mark.parametrize("habit", WITHOUT_TORCH)
def test_a_script_is_killed_in_the_middle_and_each_cell_is_what_its_line_says(
    habit: str, tmp_path: Path
) -> None:
    assert live(habit, tmp_path) == dict(zip(WITHOUT_TORCH[habit], RATES, strict=True))


@pytest.mark.projects
@pytest.mark.parametrize("habit", OTHERS)
def test_more_scripts_are_killed_in_the_middle(habit: str, tmp_path: Path) -> None:
    assert live(habit, tmp_path) == dict(zip(OTHERS[habit], RATES, strict=True))


@pytest.mark.projects
@pytest.mark.parametrize("habit", WITH_TORCH)
def test_scripts_with_torch_are_killed_in_the_middle(habit: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    assert live(habit, tmp_path) == dict(zip(WITH_TORCH[habit], RATES, strict=True))


@pytest.mark.projects
def test_hydra_is_the_real_one() -> None:
    if importlib.util.find_spec("hydra") is None:
        pytest.skip("hydra-core is not installed: `make test-projects` installs it")
    import hydra

    assert hydra.__version__.startswith("1.3")
