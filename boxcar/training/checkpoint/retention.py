"""Which checkpoints may go. Pure: names in, names out.

A checkpoint is `step_00000120`; a second one of the same step is `step_00000120-1`, because a
file that somebody may need is never overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

_NAME = re.compile(r"step_(\d{8,})(?:-(\d+))?")


class Plan(NamedTuple):
    """`verify`: a checkpoint that must be read back whole before anything of `delete` goes."""

    delete: list[str]
    verify: str | None


def name_checkpoint(step: int, taken: Collection[str]) -> str:
    """A name for a new checkpoint, newer than all `taken` ones of the same step."""
    again = [key[1] for key in map(age_of_checkpoint, taken) if key is not None and key[0] == step]
    return f"step_{step:08d}" + (f"-{max(again) + 1}" if again else "")


def age_of_checkpoint(name: str) -> tuple[int, int] | None:
    """Step and count, in the order of age; None for a name that is no checkpoint's."""
    found = _NAME.fullmatch(name)
    return (int(found[1]), int(found[2] or 0)) if found else None


def newest_first(names: Collection[str]) -> list[str]:
    """The names that are checkpoints'."""
    keys = {name: key for name in names if (key := age_of_checkpoint(name)) is not None}
    return sorted(keys, key=lambda name: keys[name], reverse=True)


def plan_retention(names: Collection[str], keep: int, verified: Collection[str]) -> Plan:
    """Keep the `keep` newest, and delete nothing before a kept one is known to be readable.

    `verified` were read back whole: what this run resumed from, and what was verified since. So the
    anchor of a resume goes only when a newer one has proved that it can take its place.
    """
    ordered: Sequence[str] = newest_first(names)
    kept, old = list(ordered[:keep]), list(ordered[keep:])
    if not old or any(name in verified for name in kept):
        return Plan(old, None)
    return Plan(old, kept[0])
