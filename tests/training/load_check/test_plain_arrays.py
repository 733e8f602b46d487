"""Arrays looked at without torch: the same words as with it."""

from __future__ import annotations

import importlib.util
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files.plan import Artifact
from boxcar.training.load_check import artifacts, survey, tensors
from boxcar.training.load_check.refusals import How

numpy = pytest.importorskip("numpy")
INF, NAN = math.inf, math.nan
LEAVES: dict[str, Any] = {
    "finite": numpy.arange(12.0).reshape(3, 4),
    "half": numpy.ones(3, "f2"),
    "whole": numpy.arange(5),
    "flags": numpy.array([True, False]),
    "complex": numpy.array([1 + 2j, complex(NAN, 0)]),
    "nan": numpy.array([1.0, NAN, INF, -INF]),
    "mask": numpy.array([[0.0, -INF], [0.0, 0.0]]),
    "best.score": numpy.array(INF),
    "model.score": numpy.array(INF),
    "long": numpy.concatenate([numpy.zeros(1 << 19), [NAN]]),
    "columns": numpy.asfortranarray(numpy.full((3, 2), NAN)),
    "none": numpy.zeros((0, 3)),
    "text": numpy.array(["a"]),
    "number": 3,
}


@pytest.mark.parametrize("name", LEAVES)
def test_an_array_has_the_same_word_as_with_torch(name: str) -> None:
    leaves = [(name, LEAVES[name])]
    with_torch, without = tensors.survey(leaves), survey.survey_arrays(leaves)
    assert without.problems == with_torch.problems
    assert without.facts == with_torch.facts
    assert without.others == with_torch.others


def test_a_pickle_is_judged_where_there_is_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *_: None if name == "torch" else find(name)
    )
    monkeypatch.setattr(tensors, "survey", lambda leaves: pytest.fail("torch was asked"))
    (tmp_path / "good.pkl").write_bytes(pickle.dumps({"w": LEAVES["finite"]}))
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps({"w": LEAVES["nan"]}))
    for how in (How(), How(True, True)):
        good = artifacts.look(tmp_path, Artifact("good.pkl", ("w",)), how)
        bad = artifacts.look(tmp_path, Artifact("bad.pkl"), how)
        assert good.problems == () and good.facts["parameters"] == 12
        assert bad.problems == ("w holds 1 NaN and 2 Inf among 4 values",)
