from __future__ import annotations

import pytest

from boxcar.shared.artifacts import cadence


@pytest.mark.parametrize(
    ("cost_s", "mtbf_s", "window_s"),
    [(30, 3 * 3600, 805), (10, 3600, 268), (120, 24 * 3600, 4554), (0, 3600, 0)],
)
def test_the_window_is_youngs(cost_s: float, mtbf_s: float, window_s: float) -> None:
    assert cadence.window_s(cost_s, mtbf_s) == pytest.approx(window_s, abs=0.5)
