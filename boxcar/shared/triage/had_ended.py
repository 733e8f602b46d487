"""How far a training had come, as far as its numbers and its log tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COUNT_OF = re.compile(
    r"(?i)\b(fold|trial|epoch|ep|step|iter|iteration)\b"
    r"[^\n\d]{0,12}(\d{1,9}) ?(?:/|of) ?(\d{1,9})\b"
)
_BAR = re.compile(r"\b()(\d{1,9})/(\d{1,9}) \[")
# Nothing but signs up to its number: `epoch time 0.4` and `per epoch: 3` count no epochs.
_EPOCH = re.compile(r"(?i)(?<!best )(?<!per )\bepoch\b[^\w\n]{1,6}(\d{1,6}(?:\.\d+)?)\b")
# Around the epochs: each of them has epochs of its own.
_OUTER = ("fold", "trial")
_TAIL = 20_000


def had_ended(progress: Mapping[str, Any], epochs: int, log: str) -> bool | None:
    """False where it tells of work that was left, None where nobody can know; `epochs` 0: nobody
    has asked for a number of them.

    Some scripts count from 0, so that one that has reached all but one may have ended or not. A
    line of a log that names the last epoch may stand at its beginning, and a bar that is full may
    be that of one epoch.
    """
    reached = _number(progress.get("epoch"))
    left = _left_by_log(log[-_TAIL:], epochs)
    if epochs and reached is not None:
        told = _is_all(reached, epochs)
        return False if told and left.intersection(_OUTER) else told
    return False if left else None


def names_last_epoch(epochs: int, log: str) -> bool:
    """Whether a log counts up to the last of `epochs`, once, and tells of nothing that was left."""
    tail = log[-_TAIL:]
    counted = [float(found) for found in _EPOCH.findall(tail)]
    is_one_count = counted == sorted(counted)
    return bool(epochs and counted and is_one_count and counted[-1] >= epochs) and not _left_by_log(
        tail, epochs
    )


def other_than_asked(progress: Mapping[str, Any], epochs: int, log: str) -> str:
    """`3 of 20 epochs`: what was done where that is not what was asked for, as far as it is told.

    All but one may be all, of a script that counts from 0. A log may name later epochs than it has
    trained, but hardly fewer.
    """
    reached = _number(progress.get("epoch"))
    by_log = max((float(found) for found in _EPOCH.findall(log[-_TAIL:])), default=None)
    done = by_log if reached is None else reached
    if not epochs or done is None:
        return ""
    is_more = reached is not None and reached > epochs
    return f"{done:g} of {epochs} epochs" if is_more or _is_all(done, epochs) is False else ""


def began_again(before: str, own: str, epochs: int) -> str:
    """What a log says of an attempt that had a checkpoint: that it counted from the first epoch on
    all the same, where those before it had come further. '' where it went on.
    """
    earlier = [float(found) for found in _EPOCH.findall(before)]
    counted = [float(found) for found in _EPOCH.findall(own)]
    if not (epochs and earlier and counted and counted[0] == earlier[0] < max(earlier)):
        return ""
    return f"began at epoch {counted[0]:g} again, from a checkpoint: {epochs} epochs and more"


def _left_by_log(tail: str, epochs: int) -> set[str]:
    """What its last counts say is left, by their word; `` is a bar."""
    last = {
        found[1].lower(): (int(found[2]), int(found[3]))
        for one in (_COUNT_OF, _BAR)
        for found in one.finditer(tail)
    }
    left = {word for word, (done, of) in last.items() if _is_all(done, of) is False}
    counted = _EPOCH.findall(tail)
    if epochs and counted and _is_all(float(counted[-1]), epochs) is False:
        left.add("epoch")
    return left


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _is_all(reached: float, of: int) -> bool | None:
    if reached >= of:
        return True
    return None if reached >= of - 1 and of > 1 else False
