"""What of the plan an attempt has to know, where nobody has said it: typed by a person."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared.files import plan
from boxcar.shared.files.release import PLAN
from onbox import place


def words(folder: str, box: str) -> dict[str, str]:
    """As run_one.sh says them. Raises DamagedError, InputError."""
    found = plan.read(Path(folder, PLAN))
    return {
        "run": found.run,
        "data-dir": str(place.scratch(found, box).data_dir),
        "durable": str(place.tier(found).durable_dir),
        "grace": str(found.grace_s),
    }
