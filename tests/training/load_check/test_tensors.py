from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from boxcar.training.load_check import tensors

NAN, INF = math.nan, math.inf
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2]


def look(tensor: torch.Tensor) -> tensors.Look:
    return tensors.look_at("w", tensor)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_inf_are_counted_in_every_float(dtype: torch.dtype) -> None:
    bad = torch.tensor([1.0, NAN, INF, -INF, 0.0, NAN]).to(dtype)
    assert look(bad).problem == "w holds 2 NaN and 2 Inf among 6 values"
    assert look(torch.ones(6).to(dtype)).problem is None


def test_nan_is_seen_in_a_float_that_torch_cannot_compare() -> None:
    bad = torch.tensor([1.0, NAN]).to(torch.float8_e4m3fn)
    assert look(bad).problem == "w holds 1 NaN among 2 values"


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_nan_is_seen_in_either_part_of_a_complex_number(dtype: torch.dtype) -> None:
    bad = torch.tensor([complex(1, NAN), complex(1, 1)], dtype=dtype)
    assert look(bad).problem == "w holds 1 NaN among 2 values"
    assert look(bad.conj()).problem == "w holds 1 NaN among 2 values"


@pytest.mark.parametrize("value", [INF, -INF])
def test_a_best_score_that_nothing_has_reached_yet_is_a_bound(value: float) -> None:
    found = tensors.survey([("callbacks.ModelCheckpoint.kth_value", torch.tensor(value))])
    assert found.problems == []
    assert found.facts["bounds"] == ["callbacks.ModelCheckpoint.kth_value"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("callbacks.EarlyStopping.best_score", torch.tensor(NAN)),
        ("callbacks.ModelCheckpoint.scores", torch.tensor([INF])),
        ("state_dict.logit_scale", torch.tensor(INF)),
        ("model.logit_scale", torch.tensor(-INF)),
        ("logit_scale", torch.tensor(INF)),
    ],
)
def test_no_nan_and_no_weight_is_a_bound(path: str, value: torch.Tensor) -> None:
    assert len(tensors.survey([(path, value)]).problems) == 1


def test_whole_numbers_and_empty_tensors_are_finite() -> None:
    for tensor in (
        torch.arange(4),
        torch.tensor([True]),
        torch.empty(0),
        torch.empty(9, 9)[:0, :1],
    ):
        assert look(tensor) == tensors.Look(
            "w", tensor.numel(), tensor.numel() * tensor.element_size()
        )


@pytest.mark.parametrize("where", [0, 1, 2**18 - 1, 2**18, 2**20 - 1])
def test_one_nan_is_seen_wherever_it_is(where: int) -> None:
    large = torch.zeros(2**20)
    large[where] = NAN
    by_shape = [large, large.view(4, 2**18), large.view(2**18, 4).t(), large.view(2**10, 2, 2**9)]
    for tensor in by_shape:
        assert look(tensor).problem == f"w holds 1 NaN among {2**20} values"


def test_values_between_the_strides_of_a_view_are_not_its_own() -> None:
    storage = torch.full((1000, 1000), NAN)
    view = storage[:, ::2]
    view.fill_(1)
    assert look(view).problem is None
    view[999, 499] = INF
    assert look(view).problem == "w holds 1 Inf among 500000 values"


def test_a_tensor_that_repeats_one_value_is_looked_at_once() -> None:
    assert look(torch.ones(1).expand(10**15)) == tensors.Look("w", 1, 4)
    assert look(torch.tensor([NAN]).expand(10**15)).problem is not None


def test_a_tensor_is_looked_at_in_pieces_of_itself() -> None:
    """Pieces are views: a checkpoint that is mapped into memory is never copied."""
    large = torch.zeros(2**20 + 3)
    pieces = list(tensors._pieces(large))
    assert sum(piece.numel() for piece in pieces) == large.numel()
    assert max(piece.numel() for piece in pieces) <= 2**18
    assert {piece.untyped_storage().data_ptr() for piece in pieces} == {large.data_ptr()}


def test_a_mask_is_no_problem_and_is_noted() -> None:
    mask = torch.full((600, 600), -INF).triu(1)
    found = tensors.survey([("mask", mask)])
    assert found.problems == []
    assert found.facts["masks"] == ["mask"]


@pytest.mark.parametrize(
    "values",
    [[-INF, -INF], [-INF, 0.0, 1e-30], [INF, 0.0], [-INF, NAN, 0.0]],
    ids=["nothing finite", "not only zeros", "plus", "NaN"],
)
def test_what_only_resembles_a_mask_is_a_problem(values: list[float]) -> None:
    assert look(torch.tensor(values)).problem is not None


def test_a_masked_value_repeated_is_no_mask() -> None:
    assert look(torch.tensor([-INF]).expand(5)).problem is not None


def test_what_is_stored_of_a_sparse_tensor_is_looked_at() -> None:
    dense = torch.tensor([[0.0, NAN], [0.0, 1.0]])
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        assert look(sparse).problem == "w holds 1 NaN among 2 values"


def test_each_part_of_a_nested_tensor_is_looked_at() -> None:
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.tensor([NAN])], layout=layout)
        assert look(nested).problem == "w holds 1 NaN among 3 values"


def test_a_tensor_without_data_is_a_problem() -> None:
    problem = look(torch.ones(3, device="meta")).problem
    assert problem == "w has a shape but no data (a meta tensor)"


def test_a_type_that_cannot_be_looked_at_is_counted_and_named() -> None:
    quantized = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    found = tensors.survey([("q", quantized)])
    assert found.problems == []
    assert found.facts == {"tensors": 1, "parameters": 4, "bytes": 4, "unlooked": ["q"]}


def test_tied_weights_count_once_and_other_views_do_not() -> None:
    weight = torch.ones(4, 4)
    leaves = [("a", weight), ("b", weight.view(4, 4)), ("c", weight[0]), ("d", weight.t())]
    assert [path for path, _ in tensors.distinct(leaves)] == ["a", "c", "d"]


def test_tensors_read_one_by_one_are_all_looked_at() -> None:
    """Each may lie where the one before it lay."""

    def leaves() -> Any:
        for value in (1.0, NAN):
            tensor = torch.full((1000,), value)
            yield str(value), tensor
            del tensor

    assert tensors.survey(leaves()).problems == ["nan holds 1000 NaN among 1000 values"]


def test_of_many_bad_tensors_some_are_named_and_all_are_counted() -> None:
    found = tensors.survey((f"w{i}", torch.tensor([NAN])) for i in range(25))
    assert len(found.problems) == 11
    assert found.problems[0] == "w0 holds 1 NaN among 1 values"
    assert found.problems[-1] == "15 more tensors are not as they should be"
    assert found.facts["tensors"] == 25


def test_other_values_are_counted_and_nothing_is_nothing() -> None:
    assert tensors.survey([("epoch", 3), ("name", "x")]).others == 2
    assert tensors.survey([]).is_empty
    assert not tensors.survey([("epoch", 3)]).is_empty
