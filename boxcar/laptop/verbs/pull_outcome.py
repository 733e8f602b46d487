"""What became of one cell of a pull, or of one journal."""

from __future__ import annotations

from boxcar.shared.record import dataclass

HERE, PULLED, NOT_PUBLISHED, FAILED = "here", "pulled", "not published", "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of one cell, or of one journal. `replaced` is where an older copy lies now,
    `lacks` what is only carried and did not come, `doubt` what marks the result.
    """

    name: str
    word: str
    why: str | None = None
    size_bytes: int = 0
    replaced: str | None = None
    lacks: tuple[str, ...] = ()
    doubt: str | None = None
