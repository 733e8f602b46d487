"""Which keys of an artifact in job.yaml go together."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared import out_pattern
from boxcar.shared.files.plan import ALL, BYTES_ONLY


def refuse_odd_artifact(path: str, *, keys: Sequence[str], load: str, take: str) -> None:
    """Raises ValueError for keys that cannot both hold."""
    if keys and load == BYTES_ONLY:
        raise ValueError(f"keys are looked for when {path!r} is loaded, and load: bytes is not to")
    if take != ALL and not out_pattern.is_pattern(path):
        raise ValueError(
            f"take: {take} is said of a pattern, such as checkpoints/*.ckpt, and {path!r} is none"
        )
