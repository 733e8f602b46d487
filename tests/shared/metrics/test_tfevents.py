"""Event files that torch, SB3 and tensorboardX wrote, and what damage makes of them."""

from __future__ import annotations

import io
import math
import random
import struct
from pathlib import Path

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
