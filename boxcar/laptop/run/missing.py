"""What stands between a run and its end: one row of what `verify` and `down` say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """One thing that is not as it has to be, and the command that mends it.

    `cell` is None for what concerns the whole run.
    """

    cell: str | None
    what: str
    command: str
