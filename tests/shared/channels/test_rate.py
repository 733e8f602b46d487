from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.channels import rate


@pytest.mark.parametrize(
    ("limits", "tries_s", "wait_s"),
    [
        (((2, 10.0),), [], 0.0),
        (((2, 10.0),), [100.0], 0.0),
        (((2, 10.0),), [99.0, 100.0], 9.0),
        (((2, 10.0),), [90.0, 99.0, 100.0], 9.0),
        (((1, 1.0), (3, 60.0)), [98.0, 99.0, 100.0], 58.0),
        (((1, 60.0),), [5_000.0], 60.0),  # the clock was set back
        (((1, 60.0),), [39.0], 0.0),
    ],
)
def test_how_long_to_wait_for_a_rate(limits: Any, tries_s: list[float], wait_s: float) -> None:
    assert max(0.0, rate.wait_s(limits, tries_s, 100.0)) == wait_s
