"""Patterns are tried in order; a required file that is nowhere is said with all that was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import odd_sources
import pytest

from boxcar.shared.errors import TemporaryError
from boxcar.training.fetch.data_spec import Spec, parse
from boxcar.training.fetch.lookup import MissingError, look_up

odd_sources.register()


def spec(tmp_path: Path, **more: Any) -> Spec:
    """Three places: one, two and three."""
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir(exist_ok=True)
    patterns = [f"odd://{tmp_path}/{n}/{{task}}_{{split}}.h5" for n in ("one", "two", "three")]
    document = {"to": str(tmp_path / "data"), "tasks": ["a", "b"], "patterns": patterns} | more
    return parse(document, "spec")


def put(tmp_path: Path, *names: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"x")


def test_the_first_place_that_has_the_file_is_taken(tmp_path: Path) -> None:
    wants = spec(tmp_path)
    put(tmp_path, "two/a_train.h5", "three/a_train.h5", "one/b_train.h5", "three/b_val.h5")
    found = {(o.file.task, o.file.split): o for o in look_up(wants, 4)}
    urls = {key: o.source.url.split("/")[-2] for key, o in found.items() if o.source}
    assert urls == {("a", "train"): "two", ("b", "train"): "one", ("b", "val"): "three"}
    assert not found["a", "test"].is_found and len(found["a", "test"].reasons) == 3


def test_every_missing_one_is_said_with_every_place_that_was_tried(tmp_path: Path) -> None:
    wants = spec(tmp_path)
    with pytest.raises(MissingError) as error:
        look_up(wants, 4)
    said = str(error.value)
    assert [said.count(t) for t in ("not found: a train", "not found: b train", "not there")] == [
        1,
        1,
        6,
    ]
    assert "val" not in said and error.value.exit_code == 1


def test_a_place_out_of_reach_is_passed_over_where_another_has_the_file(tmp_path: Path) -> None:
    wants = spec(tmp_path, tasks=["a"], splits={"train": "required"})
    odd_sources.behave(tmp_path / "one", look_error="TimeoutError")
    put(tmp_path, "two/a_train.h5")
    [outcome] = look_up(wants, 1)
    assert outcome.source and not outcome.is_certain and "cannot be reached" in str(outcome)


@pytest.mark.parametrize(
    ("error", "kind"), [("TimeoutError", TemporaryError), ("PermissionError", MissingError)]
)
def test_an_optional_file_that_may_be_there_is_not_left_out(
    tmp_path: Path, error: str, kind: type[Exception]
) -> None:
    wants = spec(tmp_path, tasks=["a"])
    put(tmp_path, "one/a_train.h5")
    odd_sources.behave(tmp_path / "three", look_error=error)
    with pytest.raises(kind, match=r"a val\n.*not there"):
        look_up(wants, 4)


def test_a_missing_file_is_no_reason_to_try_again_whatever_else_is_down(tmp_path: Path) -> None:
    wants = spec(tmp_path)
    put(tmp_path, "three/a_train.h5")
    odd_sources.behave(tmp_path / "one", look_error="TimeoutError")
    with pytest.raises(TemporaryError, match="cannot be looked for: a val"):
        look_up(wants, 4)
    only_there = spec(tmp_path, tasks={"a": {}, "b": {"patterns": ["nowhere/{task}_{split}"]}})
    with pytest.raises(MissingError, match="not found: b train"):
        look_up(only_there, 4)
