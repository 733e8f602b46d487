"""The numbers of a cell in one line, for people."""

from __future__ import annotations

from typing import Any

from boxcar.laptop.common import units
from boxcar.shared.metrics.not_metrics import NOT_METRICS

_NUMBER = (int, float, type(None))


def named_numbers(values: dict[str, Any], most: int | None = None) -> str:
    """Metrics in a line: `loss 0.41, psnr 27.3, top1 -`. Step and epoch have columns of their own;
    None is a number that the job names and nobody found.
    """
    numbers = [
        f"{name} {'-' if value is None else units.four_digits(value)}"
        for name, value in values.items()
        if isinstance(value, _NUMBER) and name not in NOT_METRICS
    ]
    return ", ".join(numbers[:most])
