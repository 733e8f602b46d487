"""What follows from a failure: its class. Nothing here ever changes batch, epochs, seeds, config.

The values stand in journals, in `--json` and in people's failures.yaml.
"""

from __future__ import annotations

import enum


class Course(enum.Enum):
    RESUME_SAME = "RESUME_SAME"
    WAIT_NETWORK = "WAIT_NETWORK"
    OTHER_BOX = "OTHER_BOX"
    FREE_SPACE = "FREE_SPACE"
    FIX_CONFIG = "FIX_CONFIG"
    FIX_CODE = "FIX_CODE"
    FIX_DATA = "FIX_DATA"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PREEMPTED = "PREEMPTED"
    TIME_LIMIT = "TIME_LIMIT"
    STOP_QUEUE = "STOP_QUEUE"
    ASK = "ASK"


# As it is, the cell would fail in the same way.
CHANGE_FIRST = frozenset(
    {Course.FIX_CONFIG, Course.FIX_CODE, Course.FIX_DATA, Course.OUT_OF_MEMORY}
)
# Two alike in a row say something of what the cells share. A network that is away, a config or a
# model that is too large say nothing of the cells that come after.
OF_BOX_OR_CODE = frozenset(
    {Course.RESUME_SAME, Course.OTHER_BOX, Course.FIX_CODE, Course.STOP_QUEUE}
)
