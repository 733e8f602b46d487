from __future__ import annotations

import pytest

from boxcar.training.rehearse import kinds


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("model.layer.0.weight", kinds.MODEL),
        ("state_dict.weight", kinds.MODEL),
        ("optimizer.state.0.exp_avg", kinds.OPTIMIZER),
        ("optim.state.0.step", kinds.OPTIMIZER),
        ("optimizer.param_groups.0.lr", kinds.RATE),
        ("optimizer.param_groups.0.betas.0", kinds.OPTIMIZER),
        ("scheduler.last_epoch", kinds.SCHEDULER),
        ("lr_scheduler._last_lr.0", kinds.SCHEDULER),
        ("scaler.scale", kinds.SCALER),
        ("ema.model.weight", kinds.EMA),
        ("emaModel.weight", kinds.EMA),
        ("rng_cuda", kinds.RNG),
        ("rng.numpy.keys", kinds.RNG),
        ("generator", kinds.RNG),
        ("loader.epoch", kinds.LOADER),
        ("sampler.batches_done", kinds.LOADER),
        ("place.batch", kinds.LOADER),
        ("step", kinds.COUNTER),
        ("place.global_step", kinds.COUNTER),
        ("best.loss", kinds.FIGURE),
        ("identity.task", kinds.OTHER),
    ],
)
def test_a_value_is_told_by_the_names_on_the_way_to_it(path: str, kind: str) -> None:
    assert kinds.kind_of(tuple(path.split("."))) == kind


def test_a_tensor_of_fractions_without_a_known_name_is_a_weight() -> None:
    assert kinds.kind_of(("fc1", "bias"), is_fraction_tensor=True) == kinds.MODEL
    assert kinds.kind_of(("fc1", "bias")) == kinds.OTHER
    assert kinds.kind_of(("0", "exp_avg"), is_fraction_tensor=True) == kinds.OPTIMIZER


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
    assert kinds.is_of_one_run(("history", name), value)


@pytest.mark.parametrize(
    "name", ["time_step", "time_embedding", "attention", "batch", "state", "loss", "class_id"]
)
def test_names_that_only_look_like_it_are_compared(name: str) -> None:
    assert not kinds.is_of_one_run((name,), 7)
