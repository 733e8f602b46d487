from __future__ import annotations

import pytest

from boxcar.laptop.results import judge
from boxcar.shared.errors import InputError
from boxcar.shared.files.receipt import Finding

PATHS = ["a/model.pkl", "a/deep/model.pkl", "b/model.pkl"]


def test_a_name_is_one_cells_file_or_that_of_every_cell() -> None:
    assert judge.allowed(PATHS, ["a/model.pkl"]) == ["a/model.pkl"]
    assert judge.allowed(PATHS, ["model.pkl"]) == ["a/model.pkl", "b/model.pkl"]
    assert judge.allowed(PATHS, []) == []


def test_every_name_that_fits_nothing_is_told() -> None:
    with pytest.raises(InputError) as caught:
        judge.allowed(PATHS, ["other.pkl", "model.pkl", "c/model.pkl"])
    assert [str(text) for text in caught.value.messages] == [
        "--allow-pickle other.pkl: no artifact here has this name",
        "--allow-pickle c/model.pkl: no artifact here has this name",
    ]


def test_a_finding_is_its_cells_under_the_path_of_its_manifest() -> None:
    found = judge.by_cell({path: Finding(path, "pickle") for path in PATHS})
    assert {cell: [one.path for one in own] for cell, own in found.items()} == {
        "a": ["model.pkl", "deep/model.pkl"],
        "b": ["model.pkl"],
    }
