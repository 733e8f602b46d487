from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training import scaled_lr, warm_up


def optimizer(lr: float = 1.0) -> torch.optim.SGD:
    return torch.optim.SGD(nn.Linear(2, 1).parameters(), lr)


def rates(taken: torch.optim.Optimizer, scheduler: object, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        found.append(taken.param_groups[0]["lr"])
        taken.step()
        scheduler.step()  # type: ignore[attr-defined]
    return found


def test_the_rate_grows_with_the_batch_and_is_written_down() -> None:
    assert scaled_lr(3e-4, effective_batch=256, reference_batch=32) == pytest.approx(2.4e-3)
    facts = json.loads(Path(os.environ["BOXCAR_OUT"], "training.json").read_text())
    assert (facts["base_lr"], facts["effective_batch"], facts["reference_batch"]) == (3e-4, 256, 32)
    with pytest.raises(InputError, match="1 sample or more"):
        scaled_lr(0.1, 0, 32)


@pytest.mark.parametrize("steps", [1, 4])
def test_it_rises_in_equal_steps_to_the_whole_rate(steps: int) -> None:
    taken = optimizer(0.8)
    whole = [0.8 * min(1.0, (n + 1) / steps) for n in range(6)]
    assert rates(taken, warm_up(taken, steps), 6) == pytest.approx(whole)


def test_a_schedule_of_ones_own_follows_from_its_beginning() -> None:
    taken = optimizer()
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(taken, 10)
    found = rates(taken, warm_up(taken, 2, then=cosine), 6)
    assert found[:2] == pytest.approx([0.5, 1.0])
    assert found[2:] == pytest.approx([(1 + math.cos(math.pi * n / 10)) / 2 for n in range(4)])


def test_it_goes_on_where_it_was_saved() -> None:
    taken, resumed = optimizer(), optimizer()
    scheduler = warm_up(taken, 8)
    rates(taken, scheduler, 3)
    after = warm_up(resumed, 8)
    resumed.load_state_dict(taken.state_dict())
    after.load_state_dict(scheduler.state_dict())
    assert rates(resumed, after, 4) == rates(taken, scheduler, 4)
    with pytest.raises(InputError, match="1 or more, found 0"):
        warm_up(taken, 0)
