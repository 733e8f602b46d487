from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from boxcar.training.load_check import survey


def test_leaves_have_dotted_paths() -> None:
    value = {"model": OrderedDict({"fc.weight": 1}), "state": {0: [2, (3,)]}, "none": None}
    assert list(survey.tree_leaves(value)) == [
        ("model.fc.weight", 1),
        ("state.0.0", 2),
        ("state.0.1.0", 3),
        ("none", None),
    ]


def test_a_value_without_names_is_its_only_leaf() -> None:
    assert list(survey.tree_leaves(7)) == [("", 7)]


def test_a_container_that_holds_itself_is_walked_once() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = [loop, loop]
    assert list(survey.tree_leaves(loop)) == [("a", 1)]


def test_containers_shared_over_and_over_do_not_multiply() -> None:
    level: list[Any] = [1]
    for _ in range(100):
        level = [level, level]
    assert [leaf for _, leaf in survey.tree_leaves(level)] == [1]


def test_depth_is_not_limited_and_paths_are() -> None:
    deep: Any = "bottom"
    for _ in range(50_000):
        deep = {"x" * 10: deep}
    ((path, leaf),) = survey.tree_leaves(deep)
    assert leaf == "bottom"
    assert len(path) == survey.LONGEST_PATH
    # Python's own clean-up of so deep a value recurses unless it is taken apart.
    while isinstance(deep, dict):
        (deep,) = deep.values()


def test_an_object_with_a_state_is_looked_into() -> None:
    class Model:
        def state_dict(self) -> dict[str, int]:
            return {"weight": 1}

    value = {"model": Model(), "class": Model}
    assert list(survey.tree_leaves(value)) == [("model.weight", 1), ("class", Model)]
    assert survey.missing_keys(value, ["model.weight"]) == []


@pytest.mark.parametrize(
    "key",
    [
        "model",
        "model.encoder",
        "model.encoder.0",
        "model.encoder.0.weight",
        "a.b",
        "list.1",
        "list.1.deep",
        "7",
    ],
)
def test_a_key_is_found_as_path_name_or_start_of_names(key: str) -> None:
    value = {
        "model": {"encoder.0.weight": 1},
        "a": {"b": None},
        "list": [1, {"deep": 2}],
        7: "seven",
    }
    assert survey.missing_keys(value, [key]) == []


@pytest.mark.parametrize("key", ["mod", "model.enc", "model.encoder.1", "a.b.c", "list.2", "b"])
def test_a_key_that_is_not_there_is_named_with_what_is(key: str) -> None:
    value = {"model": {"encoder.0.weight": 1}, "a": {"b": None}, "list": [1, {"deep": 2}]}
    assert survey.missing_keys(value, [key]) == [f"lacks the key {key!r}; it holds model, a, list"]


def test_of_many_names_a_few_are_shown() -> None:
    (sentence,) = survey.missing_keys({f"n{i}": 0 for i in range(100)}, ["model"])
    assert sentence.endswith("n7 and 92 more")


def test_what_is_no_container_holds_no_key() -> None:
    assert survey.missing_keys(3.5, ["model"]) == ["lacks the key 'model'; it holds none"]
