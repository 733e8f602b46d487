from __future__ import annotations

import json
import math
from typing import Any

from boxcar.laptop.trackers.points import of_lines


def lines(*records: dict[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def test_nan_stays_nan_in_either_spelling_and_a_gap_stays_a_gap() -> None:
    found = of_lines(
        lines(
            {"step": 1, "loss": 1.0, "acc": 0.1, "note": "x", "ok": True},
            {"step": 2, "loss": None, "nonfinite": ["loss"]},
            {"step": 3, "loss": math.nan, "acc": 0.3},
        ),
        0.0,
    )
    assert [point.step for point in found] == [1, 2, 3]
    assert dict(found[0].values) == {"loss": 1.0, "acc": 0.1}
    assert math.isnan(found[1].values["loss"]) and "acc" not in found[1].values
    assert math.isnan(found[2].values["loss"])


def test_a_resume_says_its_steps_again_and_what_was_said_last_counts() -> None:
    first = [{"step": n, "loss": 1.0} for n in (1, 2, 3)]
    again = [{"step": n, "loss": 2.0} for n in (2, 3, 4)]
    found = of_lines(lines(*first, {"step": 2, "val": 7.0}, *again), 0.0)
    assert [(point.step, point.values["loss"]) for point in found] == [
        (1, 1.0),
        (2, 2.0),
        (3, 2.0),
        (4, 2.0),
    ]
    assert found[1].values["val"] == 7.0


def test_a_line_without_a_step_counts_by_its_number_and_what_is_no_json_is_left_out() -> None:
    found = of_lines([b"{torn\n", *lines({"loss": 1}, {"step": "x", "loss": 2}), b"[1]\n"], 0.0)
    assert [(point.step, point.values["loss"]) for point in found] == [(2, 1.0), (3, 2.0)]


def test_a_point_has_its_time_else_that_of_the_one_before() -> None:
    found = of_lines(
        lines(
            {"step": 1, "loss": 1},
            {"step": 2, "loss": 1, "at": "1970-01-01T00:00:10.000Z"},
            {"step": 3, "loss": 1, "at": "yesterday"},
        ),
        5.0,
    )
    assert [point.at for point in found] == [5.0, 10.0, 10.0]


def test_ten_thousand_lines_with_gaps_and_nan_are_as_many_points() -> None:
    records = [
        {"step": n, **({"loss": math.nan if n % 7 == 0 else 1 / n} if n % 3 else {"lr": 0.1})}
        for n in range(1, 10_001)
    ]
    found = of_lines(lines(*records), 0.0)
    assert len(found) == 10_000 and found[-1].step == 10_000
    assert sum(math.isnan(point.values.get("loss", 0.0)) for point in found) == 952
