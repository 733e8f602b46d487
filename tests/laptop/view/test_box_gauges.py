"""What a box had left, as rows of small bars; what a box wrote is not trusted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boxcar.laptop.view import box_gauges
from boxcar.laptop.view.box_gauges import gauges_of, read_lines
from boxcar.shared import timestamp

AT = "2026-11-29T00:00:00.000Z"


def line(minute: int, **facts: Any) -> bytes:
    return json.dumps({"at": timestamp.after(AT, 60.0 * minute), **facts}).encode() + b"\n"


def test_each_number_is_a_row_with_its_least_most_and_last():
    cards = [{"utilization_percent": 90, "memory_used_bytes": 10**9, "temperature_c": 70}]
    data = line(0, gpus=cards, memory_used_bytes=9 * 10**9, memory_cache_bytes=10**9)
    cards[0]["utilization_percent"] = 10
    data += line(1, gpus=cards, memory_used_bytes=5 * 10**9)
    found = {one.name: (one.least, one.most, one.last) for one in gauges_of(read_lines(data))}
    assert found == {
        "GPU 0 use": ("10 %", "90 %", "10 %"),
        "GPU 0 memory": ("1.0 GB",) * 3,
        "GPU 0 heat": ("70 °C",) * 3,
        "memory": ("5.0 GB", "8.0 GB", "5.0 GB"),
    }


def test_steps_a_second_are_of_all_cells_and_a_step_that_began_anew_is_none():
    steps = [{"a": 0, "b": 0}, {"a": 60, "b": 120}, {"a": 0, "b": 180}, {"a": 60}]
    data = b"".join(line(minute, steps=one) for minute, one in enumerate(steps))
    [found] = gauges_of(read_lines(data))
    assert (found.name, found.values) == ("steps a second", (3.0, 1.0, 1.0))


@pytest.mark.parametrize(
    "odd",
    [
        b"\n",
        b"not json\n",
        b"[]\n",
        b"7\n",
        b'{"at": 7}\n',
        b'{"at": "yesterday"}\n',
        line(1, scratch_free_bytes="many", gpus=7, steps=[]),
        line(1, scratch_free_bytes=float("nan"), gpus=[7, None], steps={"a": "b"}),
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_no_line_or_no_number_is_left_out(odd):
    data = line(0, scratch_free_bytes=1, steps={"a": 1}) + odd + line(2, scratch_free_bytes=3)
    [found] = gauges_of(read_lines(data))
    assert (found.name, found.values) == ("scratch free", (1.0, 3.0))


def test_only_the_last_day_is_read_however_long_the_file_is(monkeypatch):
    monkeypatch.setattr(box_gauges, "MOST_LINES", 10)
    data = b"".join(line(minute, scratch_free_bytes=minute) for minute in range(100))
    assert gauges_of(read_lines(data))[0].values == tuple(map(float, range(90, 100)))


def test_one_line_is_no_course():
    assert gauges_of(read_lines(line(0, scratch_free_bytes=1))) == []
