"""A record is what Python's own frozen dataclass is, in all that is asked of one."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from boxcar.shared import record

T = TypeVar("T")
Decorator = Callable[..., Callable[[type], Any]]


def classes(dataclass: Decorator) -> dict[str, Any]:
    @dataclass(frozen=True)
    class Nothing:
        pass

    @dataclass(frozen=True)
    class Point:
        """Where it is."""

        x: float
        y: float = 2.0
        kept: dict[str, int] = field(default_factory=dict)
        token: str = field(default="secret", repr=False)
        note: str = field(default="", compare=False, metadata={"later": True})
        kind: ClassVar[str] = "point"

        def __post_init__(self) -> None:
            if self.x == 13:
                raise ValueError("13")

        @cached_property
        def sum(self) -> float:
            return self.x + self.y

    @dataclass(frozen=True)
    class Named(Point):
        name: str = "none"

    @dataclass(frozen=True)
    class Box(Generic[T]):
        value: T

    @dataclass(frozen=True)
    class Awkward:
        missing: int
        post_init: int = 0
        state: int = 0
        kept: dict[str, int] = field(default_factory=dict)

    return {made.__name__: made for made in (Nothing, Point, Named, Box, Awkward)}


OURS, PYTHONS = classes(record.dataclass), classes(dataclasses.dataclass)


def _of_many() -> dict[str, Any]:
    """As the classes are of which so many were made that their `__init__` was written."""
    many = classes(record.dataclass)
    for name, made in many.items():
        needed = {"Nothing": {}, "Box": {"value": 1}, "Awkward": {"missing": 1}}.get(name, {"x": 1})
        for _ in range(record._MANY):
            made(**needed)
        assert "__init__" in vars(made) and made.__init__ is not record._init
    return many


MANY = _of_many()


def outcome(work: Callable[[], object]) -> object:
    """What comes of it: a value, or the kind of error."""
    try:
        return work()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("of", [OURS, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 3), {"note": "n"}),
        ((), {"x": 1, "y": 3}),
        ((), {"x": 1, "y": 3, "kept": {"a": 1}, "token": "t", "note": "n"}),
        ((), {"value": [1]}),
        ((1, 2, {}, "t", "n", "m"), {}),
        ((1, 2, {}, "t", "n", "m", 7), {}),
        ((1,), {"x": 1}),
        ((1,), {"z": 1}),
        ((), {"y": 1}),
        ((13,), {}),
        ((), {"self": 1}),
        ((), {"missing": 1}),
        ((), {"missing": 1, "state": 2, "kept": {"a": 1}}),
    ],
)
def test_it_is_made_from_the_same_words_and_shown_the_same(of, name, values, named):
    ours, pythons = (
        outcome(lambda made=made: vars(made[name](*values, **named))) for made in (of, PYTHONS)
    )
    assert ours == pythons
    if isinstance(pythons, dict):
        one, other = (made[name](*values, **named) for made in (of, PYTHONS))
        assert repr(one) == repr(other) and "secret" not in repr(one)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert one != other, "another class"


@pytest.mark.parametrize("made", [OURS, MANY, PYTHONS], ids=["ours", "many", "python's"])
def test_equal_values_are_equal_records(made):
    point, named, box = made["Point"], made["Named"], made["Box"]
    assert point(1, note="a") == point(1, note="b") != point(2)
    assert point(1) != named(1) and point(1) != (1, 2.0) and point(1) is not None
    assert box(math.nan) != box(float("nan")) and box(math.nan) == box(math.nan)
    assert hash(box("a")) == hash(box("a")) and len({box(1), box(1), box(2)}) == 2
    with pytest.raises(TypeError):
        hash(point(1))  # it holds a dict


@pytest.mark.parametrize("made", [OURS, MANY, PYTHONS], ids=["ours", "many", "python's"])
def test_nothing_of_it_changes(made):
    one = made["Point"](1)
    for work in (
        lambda: setattr(one, "x", 2),
        lambda: setattr(one, "other", 2),
        lambda: delattr(one, "x"),
    ):
        assert outcome(work) is dataclasses.FrozenInstanceError
    assert one.sum == 3.0 and one == made["Point"](1), "what is remembered is no part of it"
    assert one.kept is not made["Point"](1).kept


@pytest.mark.parametrize("made", [OURS, MANY, PYTHONS], ids=["ours", "many", "python's"])
def test_it_is_taken_for_a_dataclass(made):
    one = made["Point"](1, token="t")
    assert dataclasses.is_dataclass(one)
    assert [f.name for f in dataclasses.fields(one)] == ["x", "y", "kept", "token", "note"]
    assert dataclasses.fields(one)[-1].metadata == {"later": True}
    assert dataclasses.replace(one, y=3) == made["Point"](1, 3, token="t")
    assert outcome(lambda: dataclasses.replace(one, x=13)) is ValueError
    assert copy.copy(one) == copy.deepcopy(one) == one
    assert made["Point"].__match_args__ == ("x", "y", "kept", "token", "note")
    assert inspect.getdoc(made["Point"]) == "Where it is."
    assert made["Point"].y == 2.0 and not hasattr(made["Point"], "x")


def test_a_frozen_class_of_pythons_own_inherits_from_it():
    @dataclasses.dataclass(frozen=True)
    class Further(OURS["Point"]):  # type: ignore[name-defined,misc]
        z: float = 0.0

    assert Further(1, z=3) == Further(1, 2.0, z=3) != Further(1)
    assert outcome(lambda: setattr(Further(1), "z", 2)) is dataclasses.FrozenInstanceError
    assert repr(Further(1)).endswith("Further(x=1, y=2.0, kept={}, note='', z=0.0)")


@record.dataclass(frozen=True)
class Travels:
    word: str


def test_it_travels_to_another_process():
    assert pickle.loads(pickle.dumps(Travels("a"))) == Travels("a")


@pytest.mark.parametrize("made", [OURS, MANY], ids=["few", "many"])
def test_no_value_stands_in_the_sentence_of_a_misfit(made):
    with pytest.raises(TypeError) as error:
        made["Point"]("hidden", "hidden", {}, "hidden", "hidden", "hidden", other="hidden")
    assert "hidden" not in str(error.value) and "other" in str(error.value)
    if made is OURS:
        assert "expected x, y, kept, token, note" in str(error.value)


def test_a_class_that_may_change_is_pythons_own():
    with pytest.raises(TypeError):
        record.dataclass(frozen=False)


ROOT = Path(__file__).parents[2]
MODULES = [
    path
    for room in ("boxcar/shared", "boxcar/laptop", "onbox")
    for path in sorted((ROOT / room).rglob("*.py"))
    if path != ROOT / "boxcar/shared/record.py"
]


def has_pythons_own(source: str) -> bool:
    """Whether it makes frozen classes by Python's decorator, and no class that may change."""
    is_imported = re.search(r"^from dataclasses import .*\bdataclass\b", source, re.M)
    return bool(is_imported) and not re.search(r"^@dataclass$", source, re.M)


def test_what_starts_often_makes_its_frozen_classes_here():
    assert len(MODULES) > 200
    slow = [str(path) for path in MODULES if has_pythons_own(path.read_text())]
    assert not slow, "take dataclass from boxcar.shared.record there"


def test_a_module_with_pythons_own_is_found():
    taken = "from dataclasses import dataclass, field\n"
    assert has_pythons_own(f"{taken}@dataclass(frozen=True)\nclass A: pass\n")
    assert not has_pythons_own(f"{taken}@dataclass\nclass A: pass\n")
    assert not has_pythons_own("from boxcar.shared.record import dataclass\n")


def test_replace_is_python_s_own():
    point = OURS["Point"](1.0, note="x")
    assert point.sum == 3.0
    moved = record.replace(point, y=5.0)
    assert moved == dataclasses.replace(point, y=5.0)
    assert (moved.sum, moved.note, point.y) == (6.0, "x", 2.0)
    with pytest.raises(TypeError):
        record.replace(point, z=1)
    with pytest.raises(ValueError, match="13"):
        record.replace(point, x=13)
