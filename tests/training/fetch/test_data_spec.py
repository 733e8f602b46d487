"""A spec becomes a list of files with their places, or one list of all that is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import InputError
from boxcar.training.fetch.data_spec import Candidate, WantedFile, parse

BASE: dict[str, Any] = {
    "to": "data",
    "tasks": {"burgers1d": {}},
    "patterns": ["s3://b/full/{task}/{task}_{split}.h5", "s3://b/{task}_{split}_000.hdf5"],
}
DIGEST = "0" * 64


def problems(**changes: Any) -> str:
    with pytest.raises(InputError) as error:
        parse(BASE | changes, "data.json")
    return str(error.value)


def test_each_split_has_its_places_in_the_order_of_the_patterns() -> None:
    spec = parse(BASE | {"sha256": {"burgers1d_train.h5": DIGEST}}, "data.json")
    assert spec.files[0] == WantedFile(
        "burgers1d",
        "train",
        True,
        (
            Candidate("s3://b/full/burgers1d/burgers1d_train.h5", "burgers1d_train.h5", DIGEST),
            Candidate("s3://b/burgers1d_train_000.hdf5", "burgers1d_train.hdf5"),
        ),
    )


def test_train_is_required_and_the_other_splits_are_optional_unless_said() -> None:
    spec = parse(BASE, "data.json")
    assert [(f.split, f.is_required) for f in spec.files] == [
        ("train", True),
        ("val", False),
        ("test", False),
    ]


def test_a_task_has_its_own_splits_and_patterns() -> None:
    own = {"splits": {"all": "required"}, "patterns": ["gs://x/{task}.pt"]}
    [file] = parse(BASE | {"tasks": {"darcy2d": own}}, "data.json").files
    assert file.split == "all" and file.candidates == (
        Candidate("gs://x/darcy2d.pt", "darcy2d_all.pt"),
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://b/{task}{split}.tar.gz", "burgers1d_train.tar.gz"),
        ("s3://b/v1.2/{task}{split}", "burgers1d_train"),
        ("https://h/{task}{split}.pt?name=x.h5", "burgers1d_train.pt"),
        ("zip://{task}{split}.npz::https://h/all.zip", "burgers1d_train.npz"),
    ],
)
def test_the_name_takes_the_suffix_of_the_url(url: str, name: str) -> None:
    assert parse(BASE | {"patterns": [url]}, "x").files[0].candidates[0].name == name


def test_a_variable_in_the_folder_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXCAR_DATA_DIR", "/fast")
    assert parse(BASE | {"to": "$BOXCAR_DATA_DIR/pde"}, "x").to == Path("/fast/pde")
    monkeypatch.setenv("BOXCAR_DATA_DIR", "")
    assert "BOXCAR_DATA_DIR is not set here" in problems(to="$BOXCAR_DATA_DIR/pde")
    monkeypatch.delenv("BOXCAR_DATA_DIR")
    assert "BOXCAR_DATA_DIR is not set here" in problems(to="${BOXCAR_DATA_DIR}/pde")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pattern": []}, "unknown key 'pattern' (did you mean 'patterns'?)"),
        (
            {"tasks": {"a": {"split": {}}}},
            "unknown key in task 'a': 'split' (did you mean 'splits'",
        ),
        ({"tasks": {}}, '"tasks" should be an object'),
        ({"tasks": [{}]}, "should be a name"),
        ({"to": ""}, '"to" should be the folder'),
        ({"splits": {"train": "yes"}}, "split 'train' should be required or optional, found 'yes'"),
        ({"splits": ["train"]}, '"splits" should be an object'),
        ({"patterns": "s3://x"}, '"patterns" should be a list'),
        ({"patterns": []}, 'burgers1d train has no "patterns"'),
        ({"patterns": ["s3://b/{tsak}_{split}"]}, "unknown field 'tsak' (did you mean 'task'?)"),
        ({"patterns": ["s3://b/{task}_{split}_*.h5"]}, "has a *: expected the URL of one file"),
        ({"patterns": ["s3://b/{task}.h5"]}, "is wanted as 3 files"),
        ({"sha256": {"burgers1d_train.h4": DIGEST}}, "did you mean 'burgers1d_train.h5'?"),
        ({"sha256": {"burgers1d_train.h5": "abc"}}, "should be 64 digits"),
        ({"sha256": [1]}, '"sha256" should be an object'),
        ({"tasks": ["../../etc/x"]}, "leads out of data"),
        ({"tasks": ["/etc/x"]}, "leads out of data"),
        ({"tasks": ["a", "a_b"], "splits": {"b_c": "required", "c": "required"}}, "'a_b_c.h5'"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], said: str) -> None:
    assert said in problems(**changes)


def test_all_that_is_wrong_is_said_at_once_and_no_password_with_it() -> None:
    said = problems(to=1, patterns=["https://u:hunter2@h/{x}*"], splits=[])
    assert said.count("data.json: ") == 4 and "hunter2" not in said


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InputError, match="expected a JSON object, found list"):
        parse([], "data.json")
