"""How often to save, so that saving and what an interruption costs together lose the least time."""

from __future__ import annotations

import math

# The mean time between interruptions, where nobody knows better: what a rented spot box is believed
# to do. It is the prior of all savings, on the careful side: believed too short it costs some
# copying, believed too long it costs hours of work.
PRIOR_S = 3 * 3600.0
# Of boxes that the platform does not take back: what fails there is the machine.
ON_DEMAND_PRIOR_S = 24 * 3600.0


def window_s(cost_s: float, mtbf_s: float) -> float:
    """Seconds of work from one save to the next: sqrt(2 * mtbf * cost).

    `cost_s`: what one save costs. `mtbf_s`: the mean time between interruptions.
    (J. W. Young 1974; J. T. Daly 2006, equation 37 without its terms of higher order.)
    """
    return math.sqrt(2 * mtbf_s * cost_s)
