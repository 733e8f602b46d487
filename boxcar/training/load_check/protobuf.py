"""What protobuf writes, read without its library: the fields of a message, one after the other."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
            raise WireError(f"no field begins at byte {at}")
        if at + length > len(view):
            raise WireError(f"field {number} claims {length} bytes, {len(view) - at} are there")
        yield number, view[at : at + length]
        at += length


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for step, byte in enumerate(view[at : at + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, at + step + 1
    raise WireError(f"a number that begins at byte {at} does not end")


def packed(view: memoryview) -> list[int]:
    at, numbers = 0, []
    while at < len(view):
        number, at = _varint(view, at)
        numbers.append(number)
    return numbers


def message(value: Any, what: str) -> memoryview:
    if isinstance(value, memoryview):
        return value
    raise WireError(f"{what} is a number")


def text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else ""
