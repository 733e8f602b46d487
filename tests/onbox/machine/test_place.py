from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files.plan import Box
from onbox.machine import place


def test_the_places_of_a_plan_are_those_of_this_box(
    make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/a b")
    made = make_run({"a": {}}).plan
    made = replace(made, durable_dir="~/tier", boxes=(Box("box-a", "~/data", "~/c.json"),))
    assert place.tier(made).root == Path("/home/a b/tier/boxcar/tiny")
    assert place.scratch(made, "box-a").root == Path("/home/a b/data/boxcar/tiny")


def test_a_queue_or_box_that_is_not_planned_is_named(make_run: Any) -> None:
    made = make_run({"a": {}}).plan
    assert place.box_of(made, "q2") == "box-b"
    with pytest.raises(InputError, match=r"q9.*q1, q2"):
        place.box_of(made, "q9")
    with pytest.raises(InputError, match="b9"):
        place.scratch(made, "b9")


def test_a_relative_place_is_refused(make_run: Any) -> None:
    made = make_run({"a": {}}).plan
    with pytest.raises(DamagedError):
        place.tier(replace(made, durable_dir="tier"))
