"""What an hour of each box costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from boxcar.laptop.project.project import box_prices


def test_the_job_s_price_comes_over_the_profile_s() -> None:
    def project(typed: dict[str, str], everywhere: str | None) -> Any:
        boxes = (SimpleNamespace(name="a"), SimpleNamespace(name="b"))
        meter = SimpleNamespace(price=everywhere)
        return SimpleNamespace(
            job=SimpleNamespace(price=typed),
            profile=SimpleNamespace(meter=meter),
            plan=SimpleNamespace(boxes=boxes),
        )

    assert box_prices(project({}, None)) == {}
    assert box_prices(project({"a": "1 CNY/h"}, None)) == {"a": "1 CNY/h"}
    assert box_prices(project({"a": "1 CNY/h"}, "2 CNY/h")) == {"a": "1 CNY/h", "b": "2 CNY/h"}
    assert box_prices(project({"": "3 CNY/h"}, "2 CNY/h")) == {"a": "3 CNY/h", "b": "3 CNY/h"}
