"""Event files that torch, SB3 and tensorboardX wrote, and what damage makes of them."""

from __future__ import annotations

import io
import math
import random
import struct
from pathlib import Path

import pytest

from boxcar.shared.metrics.tfevents import Scalar, scalars

REAL = Path(__file__).parents[2] / "data" / "numbers"
TORCH = (REAL / "torch" / "events.out.tfevents.torch").read_bytes()


def of(data: bytes) -> list[Scalar]:
    return list(scalars(io.BytesIO(data)))


def test_scalars_of_both_ways_are_read_with_step_time_and_nan() -> None:
    found = of(TORCH)
    loss = [one for one in found if one.tag == "loss/val"]
    assert [one.step for one in loss] == [0, 1, 2, 3, 4, 5]
    assert (loss[1].value, loss[1].at) == (0.5, 1795000010.0) and math.isnan(loss[5].value)
    acc = [one.value for one in found if one.tag == "acc"]
    assert acc == [struct.unpack("<f", struct.pack("<f", 0.5 + n / 10))[0] for n in range(5)]
    assert next(one for one in found if one.tag == "before").step == -1


def test_pictures_texts_and_histograms_are_no_scalars() -> None:
    assert {one.tag for one in of(TORCH)} == {"loss/val", "acc", "before"}


def test_of_a_file_that_is_cut_off_what_came_before_counts() -> None:
    whole = of(TORCH)
    for size in range(0, len(TORCH), 7):
        found = of(TORCH[:size])
        assert repr(found) == repr(whole[: len(found)])


def test_a_length_of_nonsense_ends_the_reading_and_asks_for_no_memory() -> None:
    assert of(struct.pack("<Q", 2**63) + bytes(100)) == []
    assert of(TORCH + struct.pack("<Q", 2**40) + bytes(64))[-1] == of(TORCH)[-1]
    assert of(b"") == of(b"\x00" * 11) == []


def test_damage_anywhere_raises_nothing() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        data = bytearray(TORCH)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for one in of(bytes(data)):
            assert math.isfinite(one.at) and isinstance(one.value, float)


def test_a_record_larger_than_any_scalar_is_passed_over() -> None:
    size = 1024 * 1024
    large = struct.pack("<Q", size) + bytes(4) + bytes(size) + bytes(4)
    assert repr(of(large + TORCH)) == repr(of(TORCH))


def field(number: int, data: bytes) -> bytes:
    """A field of bytes of a message, its length as a varint."""
    size, length = len(data), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def event(value: bytes, at: float = 1.5, tag: str = "loss") -> bytes:
    """A record: an Event of wall time, step 7 and a Summary with one Value."""
    return record(field(5, field(1, field(1, tag.encode()) + value)), at)


def record(summary: bytes, at: float = 1.5) -> bytes:
    data = b"\x09" + struct.pack("<d", at) + b"\x10\x07" + summary
    return struct.pack("<Q", len(data)) + bytes(4) + data + bytes(4)


def tensor(dtype: int, *fields: bytes) -> bytes:
    """A Value's tensor of that type, as TensorFlow 2 and JAX write scalars."""
    return field(8, bytes([0x08, dtype]) + b"".join(fields))


SIMPLE = b"\x15" + struct.pack("<f", 0.25)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (SIMPLE, 0.25),
        (tensor(1, field(4, struct.pack("<f", 0.25))), 0.25),
        (tensor(2, field(4, struct.pack("<d", 0.1))), 0.1),
        (tensor(19, field(4, struct.pack("<e", 0.5))), 0.5),
        (tensor(1, field(5, struct.pack("<f", 0.25))), 0.25),
        (tensor(2, field(6, struct.pack("<d", 0.1))), 0.1),
    ],
)
def test_a_scalar_is_a_number_or_a_tensor_of_any_float(value: bytes, number: float) -> None:
    assert of(event(value)) == [Scalar("loss", 7, 1.5, number)]


def test_a_tensor_of_a_shape_is_no_scalar_though_it_has_one_number() -> None:
    one = field(2, field(2, b"\x08\x01"))
    assert of(event(tensor(1, one, field(4, struct.pack("<f", 0.25)))) + event(SIMPLE)) == of(
        event(SIMPLE)
    )


@pytest.mark.parametrize("at", [math.nan, math.inf])
def test_a_time_that_is_none_makes_no_scalar(at: float) -> None:
    assert of(event(SIMPLE, at)) == []


def test_a_scalar_in_a_record_larger_than_any_is_passed_over() -> None:
    assert of(event(SIMPLE, tag="x" * 100_000) + event(SIMPLE)) == of(event(SIMPLE))


def test_a_field_that_says_more_bytes_than_there_are_ends_the_reading() -> None:
    value = field(1, field(1, b"loss") + SIMPLE)
    cut = bytes([5 << 3 | 2, len(value) + 1]) + value
    assert of(event(SIMPLE) + record(cut) + event(SIMPLE)) == of(event(SIMPLE))
