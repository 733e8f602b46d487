"""How long before its time limit a queue is asked to leave: long enough for what its checkpoints
took to be copied, so that the last one is not lost.

The batch script has a lead from what the plan knows; a launch that finds checkpoints of this run on
the tier asks for more where they need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import resume_pointer
from boxcar.shared.paths import DurablePaths

_OF_SCRIPT = re.compile(r"^#SBATCH --signal=B:USR1@(\d+)$", re.MULTILINE)
# The script saves, and the agent copies that; and Slurm's signal may come late by a half minute.
_TIMES = 3
_SLACK_S = 30.0


def option(script: Path, tier: DurablePaths, most_s: int | None) -> list[str]:
    """The option of sbatch, none where the script's own lead is enough."""
    own = _OF_SCRIPT.search(script.read_text())
    copied_s = max(_copied_s(tier), default=None)
    if own is None or copied_s is None:
        return []
    wanted_s = needed_s(int(own[1]), copied_s, most_s)
    return [f"--signal=B:USR1@{wanted_s}"] if wanted_s > int(own[1]) else []


def needed_s(own_s: int, copied_s: float, most_s: int | None) -> int:
    """`own_s` is the script's, `copied_s` the longest copy, `most_s` what the limit leaves."""
    wanted_s = int(_TIMES * copied_s + _SLACK_S)
    return max(own_s, wanted_s if most_s is None else min(wanted_s, most_s))


def _copied_s(tier: DurablePaths) -> Iterable[float]:
    for path in tier.cells.glob(f"*/{resume_pointer.FOLDER}/{resume_pointer.FILE}"):
        try:
            pointer = resume_pointer.read_file(path)
        except (BoxcarError, OSError):
            continue  # another verb says what is wrong with it
        if pointer and pointer.seconds is not None:
            yield pointer.seconds
