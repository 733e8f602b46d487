"""The scalars of TensorBoard's event files, read by hand: a box has no TensorBoard.

A file is records: a length of eight bytes, a sum of it, so many bytes, a sum of these. Each holds
an Event of protobuf. The sums are not compared. What is cut off or damaged ends the reading, and
what came before it counts.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from typing import BinaryIO

from boxcar.shared.record import dataclass

# A scalar has some hundred bytes; what is larger is a picture, a graph or a histogram.
_LARGEST_BYTES = 64 * 1024
MOST_RECORDS = 2_000_000
_HEAD, _SUM_BYTES = 12, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5  # of an Event
_VALUE = 1  # of a Summary
_TAG, _SIMPLE, _TENSOR = 1, 2, 8  # of a Value
_DTYPE, _SHAPE, _CONTENT, _FLOATS, _DOUBLES = 1, 2, 4, 5, 6  # of a TensorProto
_FORMS = {1: "<f", 2: "<d", 19: "<e"}  # float, double, half

Field = tuple[int, int | bytes]


@dataclass(frozen=True)
class Scalar:
    """`at` is in seconds since 1970; the value may be NaN."""

    tag: str
    step: int
    at: float
    value: float


class _DamagedRecordError(ValueError):
    pass


def scalars(file: BinaryIO, begins_at: int = 0, most: int = MOST_RECORDS) -> Iterator[Scalar]:
    """In the order of the file, from a record's beginning on. The file is left where the next one
    begins, which may not be whole yet. Raises OSError.
    """
    for data in _records(file, begins_at, most):
        try:
            found = list(_of_event(data))
        except (_DamagedRecordError, struct.error):
            return
        yield from found


def _records(file: BinaryIO, at: int, most: int) -> Iterator[bytes]:
    size_bytes = file.seek(0, io.SEEK_END)
    for _ in range(most):
        file.seek(at)
        head = file.read(_HEAD)
        length = struct.unpack_from("<Q", head)[0] if len(head) == _HEAD else size_bytes
        end = at + _HEAD + length + _SUM_BYTES
        if end > size_bytes:
            break
        if length <= _LARGEST_BYTES:
            yield file.read(length)
        at = end
    file.seek(at)


def _of_event(data: bytes) -> Iterator[Scalar]:
    at, step, summary = 0.0, 0, b""
    for number, value in _fields(data):
        if number == _WALL_TIME:
            (at,) = struct.unpack("<d", _bytes(value))
        elif number == _STEP:
            step = _signed(value)
        elif number == _SUMMARY:
            summary = _bytes(value)
    for number, value in _fields(summary):
        if number == _VALUE and (found := _of_value(_bytes(value))) and math.isfinite(at):
            yield Scalar(found[0], step, at, found[1])


def _of_value(data: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for name, value in _fields(data):
        if name == _TAG:
            tag = _bytes(value).decode("utf-8", "replace")
        elif name == _SIMPLE:
            (number,) = struct.unpack("<f", _bytes(value))
        elif name == _TENSOR:
            number = _of_tensor(_bytes(value))
    return (tag, number) if tag and number is not None else None


def _of_tensor(data: bytes) -> float | None:
    """Its one number, as TensorFlow 2 and JAX write scalars; None where it has more, or text."""
    fields = dict(_fields(data))
    form = _FORMS.get(_signed(fields.get(_DTYPE, 0)))
    if form is None or fields.get(_SHAPE):
        return None
    found = fields.get(_CONTENT) or fields.get(_FLOATS) or fields.get(_DOUBLES)
    if not isinstance(found, bytes) or len(found) != struct.calcsize(form):
        return None
    (number,) = struct.unpack(form, found)
    return float(number)


def _fields(data: bytes) -> Iterator[Field]:
    """Number and value of each field of a message; of a varint the value, else its bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise _DamagedRecordError
        if at + length > len(data):
            raise _DamagedRecordError
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = 0
    for place, byte in enumerate(data[at : at + 10]):
        found |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return found, at + place + 1
    raise _DamagedRecordError


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _DamagedRecordError
    return value


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise _DamagedRecordError
    return value - 2**64 if value >= 2**63 else value
