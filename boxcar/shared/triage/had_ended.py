"""Whether a training had ended when a signal came, as far as its numbers and its log tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_EPOCH_OF = re.compile(
    r"(?i)\b(?:epoch|step|iter|iteration|ep)\b[^\n\d]{0,12}(\d{1,9}) ?(?:/|of) ?(\d{1,9})\b"
)
_BAR = re.compile(r"\b(\d{1,9})/(\d{1,9}) \[")
_TAIL = 20_000


def had_ended(progress: Mapping[str, Any], epochs: int, log: str) -> bool | None:
    """False where it tells of work that was left, None where nobody can know.

    Some scripts count from 0, so that one that has reached all but one may have ended or not. A
    line of a log that names the last epoch may stand at its beginning, and a bar that is full may
    be that of one epoch.
    """
    reached = progress.get("epoch")
    if epochs and isinstance(reached, (int, float)) and not isinstance(reached, bool):
        return _is_all(reached, epochs)
    tail = log[-_TAIL:]
    last = [found[-1] for one in (_EPOCH_OF, _BAR) if (found := one.findall(tail))]
    is_left = any(_is_all(int(done), int(of)) is False for done, of in last)
    return False if is_left else None


def _is_all(reached: float, of: int) -> bool | None:
    if reached >= of:
        return True
    return None if reached == of - 1 and of > 1 else False
