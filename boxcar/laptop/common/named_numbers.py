"""The numbers of a cell in one line, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.laptop.common import units
from boxcar.shared.metrics.not_metrics import NOT_METRICS

_NUMBER = (int, float, type(None))
_NO_BEST: Mapping[str, Any] = {}


def named_numbers(
    values: dict[str, Any], most: int | None = None, best: Mapping[str, Any] = _NO_BEST
) -> str:
    """Metrics in a line: `loss 0.41 (best 0.38), psnr 27.3, top1 -`. Step and epoch have columns of
    their own; None is a number that the job names and nobody found. `best` is the word of job.yaml.
    """
    numbers = [
        f"{name} {_number(value)}{_beside(value, best.get(name))}"
        for name, value in values.items()
        if isinstance(value, _NUMBER) and name not in NOT_METRICS
    ]
    return ", ".join(numbers[:most])


def _number(value: float | None) -> str:
    return "-" if value is None else units.four_digits(value)


def _beside(value: float | None, best: object) -> str:
    if not isinstance(best, (int, float)) or best == value:
        return ""
    return f" (best {_number(best)})"
