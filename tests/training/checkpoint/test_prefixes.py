from __future__ import annotations

import pytest
import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.checkpoint import training_state


class Layered(nn.Module):
    """Has a part that is called `module`, as a wrapper's would be."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(2, 2)
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.BatchNorm1d(2)])


def bare_model() -> nn.Module:
    return Layered()


def compiled() -> nn.Module:
    return torch.compile(Layered())  # type: ignore[return-value]


def parallel() -> nn.Module:
    return nn.DataParallel(Layered())


def compiled_parallel() -> nn.Module:
    return torch.compile(nn.DataParallel(Layered()))  # type: ignore[return-value]


def compiled_block() -> nn.Module:
    model = Layered()
    model.blocks[0] = torch.compile(model.blocks[0])  # type: ignore[assignment]
    return model


WRAPPINGS = [bare_model, compiled, parallel, compiled_parallel, compiled_block]


@pytest.mark.parametrize("saved_as", WRAPPINGS)
@pytest.mark.parametrize("loaded_as", WRAPPINGS)
def test_weights_saved_in_any_wrapping_load_into_any(saved_as, loaded_as) -> None:  # type: ignore[no-untyped-def]
    source, target = saved_as(), loaded_as()
    saved = training_state.weights(source)
    training_state.load_weights(target, saved)
    assert set(saved) == set(Layered().state_dict())
    for one, other in zip(source.parameters(), target.parameters(), strict=True):
        assert torch.equal(one, other)


def test_names_that_another_program_saved_with_prefixes_load_too() -> None:
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    saved = {f"_orig_mod.module.{name}": value for name, value in source.state_dict().items()}
    training_state.load_weights(target, saved)
    assert torch.equal(source.weight, target.weight)


def test_an_average_of_a_wrapped_model_loads_into_one_of_a_bare_model() -> None:
    average = torch.optim.swa_utils.AveragedModel
    source, target = average(nn.DataParallel(nn.Linear(2, 2))), average(nn.Linear(2, 2))
    training_state.load_weights(target, training_state.weights(source))
    assert torch.equal(next(source.parameters()), next(target.parameters()))


def test_two_names_that_differ_only_by_a_wrapper_are_not_guessed() -> None:
    with pytest.raises(InputError, match=r"the checkpoint has a\.weight and a\.module\.weight"):
        training_state.fit_names({"a.weight": 1, "a.module.weight": 2}, ["module.a.weight"])


def test_what_has_no_counterpart_keeps_its_name() -> None:
    assert list(training_state.fit_names({"module.a": 1, "module.b": 2}, ["a"])) == [
        "a",
        "module.b",
    ]


def test_the_formats_of_modules_stay_with_their_names() -> None:
    model = nn.Sequential(torch.compile(nn.BatchNorm1d(2)))  # type: ignore[arg-type]
    versions = training_state.bare_names(model.state_dict())._metadata  # type: ignore[attr-defined]
    assert versions["0"] == {"version": 2}
