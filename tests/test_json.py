"""docs/json/: the published schema of each `--json` document. `published_schemas` holds every one
that any test prints against it.
"""

from __future__ import annotations

import json

import pytest
from json_schema import problems
from published_schemas import FOLDER, hold, hold_all, schema
from record_schema import named, of_record
from test_frozen import VERBS

from boxcar.laptop.common import documents
from boxcar.laptop.common.documents import NAMES
from boxcar.laptop.project.profiles.page import document
from boxcar.laptop.project.profiles.profile import load_profile

WITH_JSON = sorted(verb for verb, flags in VERBS.items() if "json" in flags.split())
RECORDS = [
    (path.stem, name)
    for path in sorted(FOLDER.glob("*.json"))
    for name, part in json.loads(path.read_text("utf-8")).get("$defs", {}).items()
    if "$comment" in part
]


def test_every_verb_with_json_has_a_schema_and_no_schema_is_of_another_one():
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted([*WITH_JSON, "error"])


@pytest.mark.parametrize("verb", [*WITH_JSON, "error"])
def test_a_schema_asks_for_the_format_first_and_lists_all_keys(verb):
    published = schema(verb) or {}
    shapes = [published["$defs"][ref["$ref"][8:]] for ref in published.get("anyOf", [])]
    for shape in shapes or [published]:
        assert next(iter(shape["properties"])) == shape["required"][0] == "format"
        assert shape["properties"]["format"] == {"const": f"boxcar.{verb}/{documents.VERSION}"}
        assert shape["additionalProperties"] is False


@pytest.mark.parametrize(("verb", "name"), RECORDS)
def test_the_schema_of_a_record_is_as_the_record(verb, name):
    part = dict((schema(verb) or {})["$defs"][name])
    record, _, rows = part.pop("$comment").partition(", in the rows of ")
    made = of_record(named(record), NAMES.get(verb, {}).get(rows, {}))
    assert part == {key: made[key] for key in made if key != "$comment"}, json.dumps(made)


@pytest.mark.parametrize("name", ["local", "autodl", "runpod"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_a_platform_is_as_its_schema_says(name, language):
    page = document(load_profile(name, FOLDER), language)
    hold(documents.of_verb("explain", page))


ROW = {"cell": "a", "from": "queue_1", "to": "queue_2"}


@pytest.mark.parametrize(
    ("more", "said"),
    [({"then": 1}, "'then', which the schema does not list"), ({"to": 3}, "expected string")],
)
def test_a_key_that_is_not_listed_and_a_value_of_another_kind_are_found(more, said):
    hold(documents.of_verb("move", ROW))
    with pytest.raises(AssertionError, match=said):
        hold(documents.of_verb("move", ROW | more))
    with pytest.raises(AssertionError, match="lacks 'to'"):
        hold(documents.of_verb("move", {"cell": "a", "from": "queue_1"}))


def test_what_tests_print_is_held_against_the_schemas():
    hold_all()
    with pytest.raises(AssertionError, match="does not list"):
        documents.as_text(documents.of_verb("move", ROW | {"then": 1}))


@pytest.mark.parametrize(
    ("one", "wrong"),
    [
        ({"type": "integer"}, True),
        ({"type": ["string", "null"]}, 1),
        ({"enum": ["a", "b"]}, "c"),
        ({"const": "a"}, "b"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1]),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": "1"}),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, 1),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, 1),
    ],
)
def test_each_word_of_a_schema_is_held(one, wrong):
    assert len(problems(one, wrong)) == 1


def test_a_schema_with_a_word_that_is_not_held_is_refused():
    with pytest.raises(ValueError, match="minLength"):
        problems({"minLength": 3}, "a")
