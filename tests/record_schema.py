"""The JSON Schema of a frozen dataclass as `codec.encode` spells it."""

from __future__ import annotations

import dataclasses
import importlib
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from boxcar.shared.errors import Command, Message
from boxcar.shared.files import codec

PLAIN = {str: "string", bytes: "string", int: "integer", float: "number", bool: "boolean"}
TEXT = {"type": "string"}


def named(comment: str) -> type:
    """The class that a `$comment` names, such as `boxcar.shared.files.plan.Cell`."""
    module, _, name = comment.rpartition(".")
    found: type = getattr(importlib.import_module(module), name)
    return found


def of_record(record: type, names: Mapping[str, str]) -> dict[str, Any]:
    """`names` are those of documents.NAMES that its rows have."""
    hints = typing.get_type_hints(record, include_extras=True)
    fields = [field for field in dataclasses.fields(record) if field.name != codec.EXTRA]
    shapes = {names.get(f.name, f.name): of_hint(hints[f.name]) for f in fields}
    if "because" in names.values():
        shapes["because"] = {"type": ["string", "null"]}
    later = {names.get(f.name, f.name) for f in fields if f.metadata.get("later")}
    schema = {
        "$comment": f"{record.__module__}.{record.__qualname__}",
        "type": "object",
        "properties": shapes,
        "required": [name for name in shapes if name not in later],
    }
    # What a newer agent says more is kept in `extra`, and shown.
    return schema if codec.EXTRA in hints else schema | {"additionalProperties": False}


def of_hint(hint: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return of_hint(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return _of_union([of_hint(one) for one in arguments if one is not type(None)], arguments)
    if origin is tuple:
        return {"type": "array", "items": of_hint(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": of_hint(arguments[1])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if hint in (Command, Message):
        return TEXT
    if dataclasses.is_dataclass(hint):
        return {"$ref": f"#/$defs/{hint.__name__}"}  # type: ignore[union-attr]
    return {"type": PLAIN[hint]} if hint in PLAIN else {}


def _of_union(choices: list[dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    once = [one for at, one in enumerate(choices) if one not in choices[:at]]
    has_null = type(None) in arguments
    if len(once) == 1 and "type" in once[0]:
        return once[0] | {"type": [once[0]["type"], "null"]} if has_null else once[0]
    return {"anyOf": [*once, {"type": "null"}] if has_null else once}
