"""What protobuf writes, read without its library: the fields of a message, and ONNX models."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.sentence import _
from boxcar.training.load_check import survey
from boxcar.training.load_check.refusals import How, NotItsKindError

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are not what protobuf writes."""


def mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        # Not closed: pieces of it may still be held by an error. It goes with the last of them.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def fields(view: memoryview) -> Iterator[tuple[int, Any]]:
    """Each field of a message: its number, and an int or its bytes. Raises WireError."""
    at = 0
    while at < len(view):
        key, at = _varint(view, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _varint(view, at)
            yield number, value
            continue
        length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(wire_type)
        if wire_type == _LENGTH:
            length, at = _varint(view, at)
        if length is None or number == 0:
            raise WireError(_("no field begins at byte {at}", at=at))
        if at + length > len(view):
            raise WireError(
                _(
                    "field {number} claims {length} bytes, but only {n} are left",
                    number=number,
                    length=length,
                    n=len(view) - at,
                )
            )
        yield number, view[at : at + length]
        at += length


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for step, byte in enumerate(view[at : at + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, at + step + 1
    raise WireError(_("a number that begins at byte {at} does not end", at=at))


def packed(view: memoryview) -> list[int]:
    at, numbers = 0, []
    while at < len(view):
        number, at = _varint(view, at)
        numbers.append(number)
    return numbers


def message(value: Any, what: str) -> memoryview:
    if isinstance(value, memoryview):
        return value
    raise WireError(_("{what} is a number", what=what))


def text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else ""


# --- ONNX models, read as protobuf writes them: no library is needed, and nothing of them runs.
# A model must have its version, its operators' versions and a graph with something in it; each
# tensor must have as many bytes as its shape and type say. Not covered, and said (`unlooked`):
# whether values are finite. Nor are attributes, subgraphs, and whether the operators fit together.


# onnx.proto: the numbers of the fields that are looked at.
_IR_VERSION, _GRAPH, _OPERATORS = 1, 7, 8
_NODE, _INITIALIZER, _INPUT, _OUTPUT = 1, 5, 11, 12
_NODE_OUTPUT, _NODE_OPERATOR, _VALUE_NAME = 2, 4, 1
_DIMS, _TYPE, _NAME, _RAW, _ELSEWHERE, _LOCATION = 1, 2, 8, 9, 13, 14
# TensorProto.DataType, in bytes for each element; text and types of half a byte have none.
_ITEM_BYTES = {
    **{1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8},
    **{14: 8, 15: 16, 16: 2, 17: 1, 18: 1, 19: 1, 20: 1},
}
_NAMED = 10


@dataclass
class _Graph:
    nodes: int = 0
    tensors: int = 0
    parameters: int = 0
    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def look_at_onnx(path: Path, keys: Sequence[str], ignored: How) -> tuple[list[str], dict[str, Any]]:
    """Keys are names of tensors, inputs and outputs."""
    try:
        return _look(mapped(path), path.parent, keys)
    except WireError as error:
        raise NotItsKindError(
            _("is truncated or not an ONNX model: {error}", error=error)
        ) from error


def _look(view: memoryview, folder: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    graph, numbers = _Graph(), set()
    for number, value in fields(view):
        numbers.add(number)
        if number == _GRAPH:
            _read_graph(message(value, _("a graph")), folder, graph)
    if lacking := {_IR_VERSION, _GRAPH, _OPERATORS} - numbers:
        raise WireError(
            _(
                "a model has the fields 1, 7 and 8, this one lacks {lacking}",
                lacking=sorted(lacking),
            )
        )
    problems = [*graph.problems[:_NAMED], *survey.missing_keys(dict.fromkeys(graph.names), keys)]
    if not graph.nodes and not graph.tensors:
        problems.append(_("holds nothing: its graph has no node and no tensor"))
    facts = {"nodes": graph.nodes, "tensors": graph.tensors, "parameters": graph.parameters}
    return problems, facts | {"unlooked": [_("every value")]}


def _read_graph(view: memoryview, folder: Path, graph: _Graph) -> None:
    for number, value in fields(view):
        if number == _NODE:
            node = dict(fields(message(value, _("a node"))))
            if _NODE_OPERATOR not in node:
                raise WireError(_("a node without an operator"))
            graph.nodes += 1
        elif number == _INITIALIZER:
            _read_tensor(message(value, _("a tensor")), folder, graph)
        elif number in (_INPUT, _OUTPUT):
            about = dict(fields(message(value, _("a value"))))
            graph.names.append(text(about.get(_VALUE_NAME, b"")))


def _read_tensor(view: memoryview, folder: Path, graph: _Graph) -> None:
    shape: list[int] = []
    found: dict[int, Any] = {}
    elsewhere: dict[str, str] = {}
    for number, value in fields(view):
        if number == _DIMS:
            shape += [value] if isinstance(value, int) else packed(value)
        elif number == _ELSEWHERE:
            entry = dict(fields(message(value, _("a place"))))
            elsewhere[text(entry.get(1, b""))] = text(entry.get(2, b""))
        found[number] = value
    name = text(found.get(_NAME, b""))
    graph.tensors += 1
    graph.parameters += math.prod(shape)
    graph.names.append(name)
    raw = found.get(_RAW)
    wanted_bytes = math.prod(shape) * _ITEM_BYTES.get(found.get(_TYPE, 0), 0)
    if raw is not None and wanted_bytes and len(message(raw, "data")) != wanted_bytes:
        graph.problems.append(
            _(
                "{name} has {n} bytes, its shape asks for {wanted_bytes}",
                name=name,
                n=len(raw),
                wanted_bytes=wanted_bytes,
            )
        )
    if found.get(_LOCATION) == 1 and (problem := _elsewhere_problem(folder, elsewhere)):
        graph.problems.append(
            _(
                "{name} lies in the file {elsewhere!r}, {problem}",
                name=name,
                elsewhere=elsewhere.get("location"),
                problem=problem,
            )
        )


def _elsewhere_problem(folder: Path, place: Mapping[str, str]) -> str | None:
    """Where it lies there, by its offset and length, is more than the file has."""
    end = int(place.get("offset", 0)) + int(place.get("length", 0))
    try:
        with regular_file.open_left(folder, place.get("location", "")) as file:
            size_bytes = file.seek(0, 2)
    except (OSError, ValueError, DamagedError):
        return _("which is not beside it")
    return (
        _("up to byte {end}, and {size_bytes} are there", end=end, size_bytes=size_bytes)
        if end > size_bytes
        else None
    )
