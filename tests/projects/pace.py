"""The steps of these scripts: short ones, and one that a test may hold, to kill the script there.

It is copied beside each script. A cell is held at step 6 while a file `hold-CELL` lies in a folder
above its `{out}`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

HELD_STEP = 6
STEP_S = 0.01


def step(number: int) -> None:
    print("step", number, flush=True)
    time.sleep(STEP_S)
    while number == HELD_STEP and _is_held():
        time.sleep(STEP_S)


def _is_held() -> bool:
    name = f"hold-{os.environ.get('BOXCAR_CELL')}"
    return any((folder / name).exists() for folder in Path(os.environ["BOXCAR_OUT"]).parents)
