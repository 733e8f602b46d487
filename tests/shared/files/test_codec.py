from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import codec


@dataclass(frozen=True)
class Part:
    name: str
    size_bytes: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    FORMAT: ClassVar[str] = "sample"
    VERSION: ClassVar[int] = 3

    run: str
    count: int
    seconds: float
    is_good: bool
    note: str | None
    parts: tuple[Part, ...]
    words: tuple[str, ...]
    by_name: dict[str, Part]
    facts: dict[str, Any]
    limit: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Short:
    FORMAT: ClassVar[str] = "short"
    VERSION: ClassVar[int] = 1
    name: str


@dataclass(frozen=True)
class Holder:
    FORMAT: ClassVar[str] = "holder"
    VERSION: ClassVar[int] = 1
    facts: dict[str, Any]


GOOD: dict[str, Any] = {
    "format": "boxcar.sample/3",
    "run": "digits-ablation",
    "count": 3,
    "seconds": 1.5,
    "is_good": True,
    "note": None,
    "parts": [{"name": "best.pth", "size_bytes": 7}],
    "words": ["a", "b"],
    "by_name": {"x": {"name": "x"}},
    "facts": {"any": ["thing", 1, None]},
}


def read(changes: dict[str, Any]) -> Sample:
    return codec.from_document(Sample, json.dumps(GOOD | changes).encode(), "here.json")


def test_a_document_reads_as_what_it_says():
    assert read({}) == Sample(
        run="digits-ablation",
        count=3,
        seconds=1.5,
        is_good=True,
        note=None,
        parts=(Part("best.pth", 7),),
        words=("a", "b"),
        by_name={"x": Part("x")},
        facts={"any": ["thing", 1, None]},
    )


def test_a_document_is_readable_text_that_ends_in_a_line_feed():
    text = codec.to_document(Short(name="größe")).decode()
    assert text == '{\n "format": "boxcar.short/1",\n "name": "größe"\n}\n'


# --- unknown fields


def test_unknown_fields_are_kept_at_every_depth_and_written_back():
    newer = {
        "priority": {"of": ["a", "newer", "version"]},
        "extra": "is a name like any other",
        "parts": [{"name": "best.pth", "size_bytes": 7, "mode": 420}],
        "by_name": {"x": {"name": "x", "size_bytes": 0, "owner": "me"}},
    }
    sample = read(newer)
    assert sample.extra == {"priority": newer["priority"], "extra": newer["extra"]}
    assert sample.parts[0].extra == {"mode": 420}
    written = json.loads(codec.to_document(sample))
    assert written == GOOD | newer | {"limit": None}


FINITE = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.builds(
        Sample,
        run=st.text(),
        count=st.integers(),
        seconds=FINITE,
        is_good=st.booleans(),
        note=st.none() | st.text(),
        parts=st.lists(st.builds(Part, st.text(), st.integers()), max_size=3).map(tuple),
        words=st.lists(st.text()).map(tuple),
        by_name=st.dictionaries(st.text(), st.builds(Part, st.text()), max_size=3),
        facts=st.dictionaries(st.text(), json_values, max_size=3),
        limit=st.none() | st.integers(),
        extra=st.dictionaries(st.text().map("new_{}".format), json_values, max_size=3),
    )
)
def test_whatever_is_written_reads_the_same_and_is_written_the_same(sample):
    data = codec.to_document(sample)
    found = codec.from_document(Sample, data, "here.json")
    assert codec.to_document(found) == data
    assert found == sample


# --- wrong types


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        ("run", 3),
        ("run", None),
        ("count", True),
        ("count", "3"),
        ("count", 3.0),
        ("count", None),
        ("seconds", "1.5"),
        ("seconds", False),
        ("is_good", 1),
        ("is_good", "true"),
        ("note", 5),
        ("parts", {}),
        ("parts", "best.pth"),
        ("words", ["a", 1]),
        ("words", "ab"),
        ("by_name", []),
        ("facts", None),
        ("limit", True),
        ("limit", "1"),
    ],
)
def test_a_wrong_type_names_the_file_and_the_field(field_name, value):
    with pytest.raises(DamagedError, match=rf"^here\.json: {field_name}(\[1\])?: expected "):
        read({field_name: value})


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"parts": [{"name": "x"}, {"name": 1}]}, r"parts\[1\]\.name: expected str, found int"),
        ({"parts": ["best.pth"]}, r"parts\[0\]: expected an object, found str"),
        (
            {"by_name": {"x": {"name": "x", "size_bytes": True}}},
            r"by_name\.x\.size_bytes: expected int, found bool",
        ),
        ({"parts": [{}]}, r"parts\[0\]: the field 'name' is missing"),
    ],
)
def test_a_wrong_type_inside_names_the_way_to_it(changes, where):
    with pytest.raises(DamagedError, match=rf"^here\.json: {where}$"):
        read(changes)


@pytest.mark.parametrize("field_name", ["count", "seconds", "is_good", "parts", "by_name", "limit"])
def test_no_error_repeats_a_value_because_it_may_be_a_secret(field_name):
    for value in ("s3cr3t", ["s3cr3t"], {"x": {"name": ["s3cr3t"]}}, [{"name": ["s3cr3t"]}]):
        with pytest.raises(DamagedError) as caught:
            read({field_name: value})
        assert "s3cr3t" not in str(caught.value)


# --- what the wire has besides


def whole(number: int) -> None:
    if number < 0:
        raise ValueError("expected 0 or more")


@dataclass(frozen=True)
class Travelling:
    data: bytes
    has: tuple[Annotated[int, whole], str] | None
    sizes: tuple[Annotated[int, whole], ...] = ()

    def __post_init__(self) -> None:
        if self.data == b"bad":
            raise ValueError("a bad one")


def test_bytes_travel_as_base64():
    assert codec.encode(Travelling(b"\0\1\xff", (1, "x"))) == {
        **{"data": "AAH/", "has": [1, "x"], "sizes": []}
    }


@given(st.builds(Travelling, st.binary(), st.none() | st.tuples(st.integers(0), st.text())))
def test_what_travels_is_read_as_it_was_written(sent):
    spelled = json.dumps(codec.encode(sent))
    assert codec.decode(Travelling, json.loads(spelled), "here") == sent


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        *(({"data": text}, "data: expected base64, found str") for text in ("AAH", "A AH/", "ä")),
        ({"data": None}, "data: expected base64, found null"),
        ({"data": 3}, "data: expected base64, found int"),
        ({"data": ["AAH/"]}, "data: expected base64, found list"),
        ({"has": [1]}, "has: expected a list of 2, found one of 1"),
        ({"has": [-1, "x"]}, "has[0]: expected 0 or more"),
        ({"has": [1, 2]}, "has[1]: expected str, found int"),
        ({"sizes": [1, -1]}, "sizes[1]: expected 0 or more"),
        ({"sizes": [True]}, "sizes[0]: expected int, found bool"),
        ({"data": "YmFk"}, "a bad one"),
    ],
)
def test_what_breaks_a_rule_names_the_field(changes, told):
    good = {"data": "AAH/", "has": [1, "x"], "sizes": [1]}
    with pytest.raises(DamagedError) as caught:
        codec.decode(Travelling, good | changes, "here")
    assert str(caught.value) == f"here: {told}"


def test_a_missing_field_is_named():
    document = {key: value for key, value in GOOD.items() if key != "count"}
    with pytest.raises(DamagedError, match=r"here\.json: the field 'count' is missing"):
        codec.from_document(Sample, json.dumps(document).encode(), "here.json")


def test_a_whole_number_is_taken_where_a_fraction_may_stand():
    seconds = read({"seconds": 2}).seconds
    assert seconds == 2.0 and type(seconds) is float


# --- versions


@pytest.mark.parametrize("version", [3, 2])
def test_this_version_and_the_one_before_are_read(version):
    assert read({"format": f"boxcar.sample/{version}"}).run == "digits-ablation"


def test_the_version_before_is_written_back_as_this_one():
    written = json.loads(codec.to_document(read({"format": "boxcar.sample/2"})))
    assert written["format"] == "boxcar.sample/3"


@pytest.mark.parametrize(
    "found", ["boxcar.sample/1", "boxcar.part/3", "boxcar.sample/03", "", None, 3, ["x"]]
)
def test_another_version_or_format_is_refused_with_both_names(found):
    with pytest.raises(DamagedError, match=r"expected format 'boxcar\.sample/3', found") as raised:
        read({"format": found})
    assert repr(found) in str(raised.value)


@pytest.mark.parametrize("version", [4, 5, 10, 4711])
def test_a_newer_version_is_said_and_is_not_called_damage(version):
    with pytest.raises(NewerError, match="written by a newer Boxcar: update") as raised:
        read({"format": f"boxcar.sample/{version}"})
    assert "damage" not in str(raised.value)


def test_before_the_first_version_there_is_none():
    with pytest.raises(DamagedError, match=r"boxcar\.short/0"):
        codec.from_document(Short, b'{"format": "boxcar.short/0", "name": "x"}', "here.json")


# --- what is no document


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(codec.to_document(Short("x"))[:-4], id="cut"),
        pytest.param(b"\0" * 512, id="zeros, as some file systems leave them after a power cut"),
        pytest.param(b'{"format": "\xff\xfe"}', id="invalid UTF-8"),
        pytest.param(b'{"format": "boxcar.short/1", "name": "x"} {}', id="two values"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"name": "x"}', id="no format"),
        pytest.param(b"[" * 100_000, id="nested too deep"),
        pytest.param(b'{"a":' * 100_000, id="objects nested too deep"),
    ],
)
def test_what_is_no_document_is_damage_that_names_the_file(data):
    with pytest.raises(DamagedError, match=r"^here\.json: "):
        codec.from_document(Short, data, "here.json")


@given(st.binary())
def test_any_bytes_are_a_document_or_damage(data):
    with pytest.raises(DamagedError):
        codec.from_document(Sample, data, "here.json")


# --- values that JSON does not have


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_does_not_break_the_document_for_strict_readers(number):
    data = codec.to_document(Holder({"loss": number, "all": [number]}))
    json.loads(data, parse_constant=refuse)
    holder = codec.from_document(Holder, data, "here.json")
    assert codec.to_document(holder) == data


@pytest.mark.parametrize("text", ["\udcff", "\ud800", "a\udce9.pth"])
def test_a_name_that_is_no_utf8_is_kept_and_the_document_is_utf8(text):
    data = codec.to_document(Holder({text: text}))
    data.decode("utf-8")
    assert codec.from_document(Holder, data, "here.json").facts == {text: text}


# --- what is remembered


@dataclass(frozen=True)
class WholeFirst:
    value: int | float
    listed: tuple[int | float, ...]
    named: dict[str, int | float]


@dataclass(frozen=True)
class FractionFirst:
    value: float | int
    listed: tuple[float | int, ...]
    named: dict[str, float | int]


@pytest.mark.parametrize(("cls", "kind"), [(WholeFirst, int), (FractionFirst, float)])
def test_the_kinds_of_a_field_are_tried_in_their_own_order(cls, kind):
    for _ in range(2):
        found = codec.decode(cls, {"value": 1, "listed": [1], "named": {"a": 1}}, "here")
        assert [type(one) for one in (found.value, *found.listed, found.named["a"])] == [kind] * 3


def test_the_same_small_document_is_read_once(monkeypatch):
    data = codec.to_document(Short("one that nobody else reads"))
    first = codec.from_document(Short, data, "here")
    monkeypatch.setattr(codec.json, "loads", None)
    assert codec.from_document(Short, data, "there") is first


def test_a_large_document_is_kept_by_nobody():
    data = codec.to_document(Short("x" * codec._SMALL_BYTES))
    first, second = (codec.from_document(Short, data, "here") for _ in range(2))
    assert first == second and first is not second


def test_a_damaged_document_is_named_by_where_it_lies():
    for where in ("here", "there"):
        with pytest.raises(DamagedError, match=f"^{where}: "):
            codec.from_document(Short, b'{"format": "boxcar.short/1"}', where)
