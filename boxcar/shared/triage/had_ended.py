"""Whether a training had ended when a signal came, as far as its numbers and its log tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OF = re.compile(
    r"(?i)\b(?:epoch|step|iter|iteration|ep)\b[^\n\d]{0,12}(\d{1,9}) ?(?:/|of) ?(\d{1,9})\b"
    r"|\b(\d{1,9})/(\d{1,9}) \["
)
_TAIL = 20_000


def had_ended(progress: Mapping[str, Any], epochs: int, log: str) -> bool | None:
    """False where it tells of work that was left, None where it tells nothing.

    Some scripts count from 0, so that one that has reached all but one may have ended or not.
    """
    reached = progress.get("epoch")
    if epochs and isinstance(reached, (int, float)) and not isinstance(reached, bool):
        return _is_all(reached, epochs)
    found = _OF.findall(log[-_TAIL:])
    if not found:
        return None
    a, b, c, d = found[-1]
    return _is_all(int(a or c), int(b or d))


def _is_all(reached: float, of: int) -> bool | None:
    if reached >= of:
        return True
    return None if reached == of - 1 and of > 1 else False
