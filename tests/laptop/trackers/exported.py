"""A cell as trackers get it, for their tests."""

from __future__ import annotations

import math
from typing import Any

from boxcar.laptop.trackers.exported_cell import ExportedCell, Point

BEGAN_S = 1_795_000_000.0
POINTS = (
    Point(1, BEGAN_S + 1, {"loss": 0.5, "lr": 0.1}),
    Point(2, BEGAN_S + 2, {"loss": math.nan}),
    Point(5, BEGAN_S + 5, {"loss": 0.25, "val/acc": 0.75}),
)


def cell(name: str = "a_seed1", **own: Any) -> ExportedCell:
    given: dict[str, Any] = {
        "run": "tiny",
        "name": name,
        "group": "a",
        "seed": "1",
        "box": "box-a",
        "config": {"lr": 0.1, "model.name": "x|<b>", "skip": True, "width": 8},
        "numbers": {"acc": 0.75},
        "points": POINTS,
        "began_s": BEGAN_S,
        "ended_s": BEGAN_S + 9,
        "manifest": "ab" * 32,
        "receipt": "cd" * 32,
    }
    return ExportedCell(**given | own)
