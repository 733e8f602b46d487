"""What a value has that its JSON Schema does not allow: of the words that our schemas use.

A schema with another word is refused, so that nothing in one is ever passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
WORDS = {"type", "enum", "const", "pattern", "properties", "required", "additionalProperties"}
WORDS |= {
    "minimum",
    "maximum",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "$schema",
    "$comment",
    "title",
    "description",
}


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    return list(_problems(schema, schema, value, "$"))


def _problems(root: dict[str, Any], schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if unknown := set(schema) - WORDS:
        raise ValueError(f"{at}: this check does not know {unknown}")
    if "$ref" in schema:
        yield from _problems(
            root, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, at
        )
    if "anyOf" in schema:
        tried = [list(_problems(root, one, value, at)) for one in schema["anyOf"]]
        yield from [] if not all(tried) else min(tried, key=len)
    if not _is_of(schema.get("type"), value):
        yield f"{at}: expected {schema['type']}, found {json.dumps(value)[:80]}"
    elif isinstance(value, dict):
        yield from _of_object(root, schema, value, at)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(root, schema.get("items", {}), item, f"{at}[{number}]")
    elif value not in schema.get("enum", [schema.get("const", value)]):
        yield f"{at}: {value!r} is not among {schema.get('enum', schema.get('const'))}"
    elif isinstance(value, int) and not _is_within(schema, value):
        yield f"{at}: {value} is not from {schema.get('minimum')} to {schema.get('maximum')}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} is not like {schema['pattern']}"


def _of_object(root: dict[str, Any], schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    yield from (f"{at}: lacks {key!r}" for key in schema.get("required", ()) if key not in value)
    for key, item in value.items():
        if key in known:
            yield from _problems(root, known[key], item, f"{at}.{key}")
        elif others is False:
            yield f"{at}: has {key!r}, which the schema does not list"
        else:
            yield from _problems(root, others, item, f"{at}.{key}")


def _is_within(schema: dict[str, Any], value: int) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    return bool(least <= value <= most)


def _is_of(named: str | list[str] | None, value: Any) -> bool:
    names = [named] if isinstance(named, str) else named
    return names is None or any(_is(name, value) for name in names)


def _is(name: str, value: Any) -> bool:
    # True would pass as an int.
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
