from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import Tiny
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.checkpoint.training_state import TrainingState, owned, plain


def stored(saved: Any) -> Any:
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_a_restored_training_goes_on_with_the_same_losses() -> None:
    first = Tiny()
    first.train(5)
    saved = stored(first.state.state_dict())
    expected = first.train(5)
    second = Tiny(seed=1)
    assert second.state.load_state_dict(saved) == []
    assert second.train(5) == expected
    assert second.state.step == first.state.step == 10
    for one, other in zip(first.ema.parameters(), second.ema.parameters(), strict=True):
        assert torch.equal(one, other)


SCHEDULERS = {
    "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=50),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 0.9**step),
    "plateau": torch.optim.lr_scheduler.ReduceLROnPlateau,
    "sequential": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [torch.optim.lr_scheduler.LinearLR(o), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)],
        [3],
    ),
    "cyclic": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.1, 0.2, cycle_momentum=False),
}


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_every_scheduler_of_torch_is_kept_in_plain_values(kind: str) -> None:
    def make() -> TrainingState:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return TrainingState(
            model=model, optimizer=optimizer, scheduler=SCHEDULERS[kind](optimizer)
        )

    def lrs(state: TrainingState) -> list[float]:
        found = []
        for _ in range(6):
            state.parts["optimizer"].step()
            state.parts["scheduler"].step(*([1.0] if kind == "plateau" else []))
            found.append(state.parts["optimizer"].param_groups[0]["lr"])
        return found

    first = make()
    lrs(first)
    saved = stored(first.state_dict())
    second = make()
    second.load_state_dict(saved)
    assert lrs(second) == lrs(first)


def test_all_parts_that_cannot_be_restored_are_named_at_once() -> None:
    saved = stored(Tiny(loader={"at": 1}).state.state_dict())
    model = nn.Linear(2, 2)
    other = TrainingState(
        model=model, optimizer=torch.optim.SGD(model.parameters()), scaler=torch.amp.GradScaler()
    )
    with pytest.raises(InputError) as caught:
        other.load_state_dict(saved)
    said = str(caught.value)
    assert "scaler: it is not in the checkpoint" in said
    assert "scheduler: it was saved, and this training has none" in said
    assert "loader: it was saved" in said
    assert "optimizer: it was AdamW, it is SGD" in said
    assert "model: Error(s) in loading state_dict" in said


def test_an_enabled_scaler_does_not_go_on_from_a_disabled_one() -> None:
    off, on = (
        Tiny(scaler=torch.amp.GradScaler("cpu", enabled=enabled)) for enabled in (False, True)
    )
    with pytest.raises(InputError, match="scaler: The source state dict is empty"):
        on.state.load_state_dict(off.state.state_dict())


def test_what_weights_only_would_refuse_is_named_with_its_place() -> None:
    state = Tiny(notes={"where": [Path("x")], "how": lambda: 1}).state
    with pytest.raises(InputError) as caught:
        state.state_dict()
    assert "notes.where.0: a PosixPath cannot be kept" in str(caught.value)
    assert "notes.how: a function" in str(caught.value)


def test_numpys_values_become_plain_ones() -> None:
    found = stored(plain({"a": np.float64(0.5), "b": np.arange(3), np.int64(4): (1, [2])}, "x"))
    assert found["b"].tolist() == [0, 1, 2]
    assert (found["a"], found[4]) == (0.5, (1, [2]))


def test_a_dict_is_restored_in_place() -> None:
    notes = {"a": 1}
    saved = stored(Tiny(notes={"b": 2}).state.state_dict())
    Tiny(notes=notes).state.load_state_dict(saved)
    assert notes == {"b": 2}


def test_a_part_without_state_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="ema: expected state_dict and load_state_dict, found"):
        TrainingState(model=nn.Linear(1, 1), ema=5)
    with pytest.raises(InputError, match="rng: this name is taken"):
        TrainingState(model=nn.Linear(1, 1), rng={})


def test_what_was_restored_does_not_lie_in_the_file(tmp_path: Path) -> None:
    """A mapped tensor would keep a deleted checkpoint's room on the disk."""
    first = Tiny()
    first.train(2)
    torch.save(first.state.state_dict(), tmp_path / "x.pth")
    second = Tiny()
    saved = torch.load(tmp_path / "x.pth", mmap=True, weights_only=True)
    second.state.load_state_dict(saved)
    moments = [t for of in second.optimizer.state.values() for t in of.values()]
    del saved
    with Path("/proc/self/maps").open() as maps:
        assert moments
        assert not [line for line in maps if "x.pth" in line]


def test_owned_keeps_the_containers() -> None:
    value = {"a": [torch.ones(1), (1, "x")]}
    copied = owned(value)
    assert copied == value
    assert copied["a"][0].data_ptr() != value["a"][0].data_ptr()


def test_a_rank_that_was_not_there_says_so() -> None:
    saved = stored(Tiny().state.state_dict())
    [note] = Tiny().state.load_state_dict(saved, rank=3)
    assert "rank 3 was not there when this was saved with 1 ranks" in note
