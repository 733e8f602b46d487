"""What train scripts and people's commands say of the training layer: these words do not change.

A module may move; the names below go on leading to it. Whoever adds one adds it here.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys

import pytest

from boxcar import training

EXPORTED = {
    "Cadence",
    "Checkpointer",
    "DDPWrapper",
    "DistributedConfig",
    "DistributedLauncher",
    "FSDPWrapper",
    "Fingerprint",
    "GradientAccumulator",
    "LatentCache",
    "Preemption",
    "RankAwareDataLoader",
    "Ranks",
    "ShardingPolicy",
    "StallWatch",
    "Training",
    "TrainingState",
    "capture_rng",
    "compile_model",
    "restore_rng",
    "scaled_lr",
    "warm_up",
}
# The modules that scripts import, and what docs and examples take from them.
MODULES = {
    "ranks": {
        *("Ranks", "agree_any", "all_reduce_metrics", "current", "join", "leave", "who"),
    },
    "stall": {"StallWatch", "beat", "diagnosed", "leave", "patient", "watch"},
    "progress": {"report"},
    "data_order": {"note"},
    "run_manifest": {"record"},
    "fetch": {"Files", "fetch"},
}
PROGRAMS = ["doctor", "fetch", "rehearse"]


def test_every_name_of_before_can_be_imported() -> None:
    assert set(training.__all__) >= EXPORTED
    for name in EXPORTED:
        assert getattr(training, name).__name__ == name


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_before_has_its_names(module: str) -> None:
    found = importlib.import_module(f"boxcar.training.{module}")
    assert MODULES[module] <= {name for name in vars(found) if not name.startswith("_")}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_of_before_can_be_started(program: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"boxcar.training.{program}", run_name="__main__")
    assert not ended.value.code
    assert "usage" in capsys.readouterr().out


def test_the_program_that_loads_artifacts_is_where_the_laptop_and_the_box_start_it() -> None:
    assert importlib.util.find_spec("boxcar.training.load_check.__main__")
