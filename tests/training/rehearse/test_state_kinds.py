from __future__ import annotations

import pytest

from boxcar.training.rehearse import state_kinds


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("model.layer.0.weight", state_kinds.MODEL),
        ("state_dict.weight", state_kinds.MODEL),
        ("optimizer.state.0.exp_avg", state_kinds.OPTIMIZER),
        ("optim.state.0.step", state_kinds.OPTIMIZER),
        ("optimizer.param_groups.0.lr", state_kinds.RATE),
        ("optimizer.param_groups.0.betas.0", state_kinds.OPTIMIZER),
        ("scheduler.last_epoch", state_kinds.SCHEDULER),
        ("lr_scheduler._last_lr.0", state_kinds.SCHEDULER),
        ("scaler.scale", state_kinds.SCALER),
        ("ema.model.weight", state_kinds.EMA),
        ("emaModel.weight", state_kinds.EMA),
        ("rng_cuda", state_kinds.RNG),
        ("rng.numpy.keys", state_kinds.RNG),
        ("generator", state_kinds.RNG),
        ("loader.epoch", state_kinds.LOADER),
        ("sampler.batches_done", state_kinds.LOADER),
        ("place.batch", state_kinds.LOADER),
        ("step", state_kinds.COUNTER),
        ("place.global_step", state_kinds.COUNTER),
        ("best.loss", state_kinds.FIGURE),
        ("identity.task", state_kinds.OTHER),
    ],
)
def test_a_value_is_told_by_the_names_on_the_way_to_it(path: str, kind: str) -> None:
    assert state_kinds.kind_of(tuple(path.split("."))) == kind


def test_a_tensor_of_fractions_without_a_known_name_is_a_weight() -> None:
    assert state_kinds.kind_of(("fc1", "bias"), is_fraction_tensor=True) == state_kinds.MODEL
    assert state_kinds.kind_of(("fc1", "bias")) == state_kinds.OTHER
    assert state_kinds.kind_of(("0", "exp_avg"), is_fraction_tensor=True) == state_kinds.OPTIMIZER


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", 1.5),
        ("started_at", "2026"),
        ("at", "2026"),
        ("wallTime", 1.5),
        ("running_s", 1.5),
        ("steps_per_sec", 1.5),
        ("starts", 2),
        ("id", "9f86d081"),
        ("run_id", "9f86d081"),
    ],
)
def test_clocks_names_and_counts_of_starts_are_each_runs_own(name: str, value: object) -> None:
    assert state_kinds.is_of_one_run(("history", name), value)


@pytest.mark.parametrize(
    "name", ["time_step", "time_embedding", "attention", "batch", "state", "loss", "class_id"]
)
def test_names_that_only_look_like_it_are_compared(name: str) -> None:
    assert not state_kinds.is_of_one_run((name,), 7)
