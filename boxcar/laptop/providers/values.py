"""Single fields of others' answers, as what they should be or as nothing. Never raises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from boxcar.laptop.common.text_layout import plain

# A host that ssh gets as a word: no option, no user, no pattern.
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TEXT_CHARS = 200


def text_of(found: object) -> str:
    """On one line, short, and without control characters."""
    return plain(" ".join(found.split()))[:_TEXT_CHARS] if isinstance(found, str) else ""


def number_of(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if math.isfinite(found) else None


def count_of(found: object) -> int:
    number = number_of(found)
    return int(number) if number is not None and 0 <= number < 1_000_000 else 0


def id_of(found: object) -> str:
    """As a person can copy it into a command and a path; '' for any other."""
    text = str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else ""
    return text if _ID.fullmatch(text) else ""


def host_of(found: object) -> str:
    return found if isinstance(found, str) and _HOST.fullmatch(found) else ""


def port_of(found: object) -> int:
    number = int(found) if isinstance(found, (int, str)) and str(found).isdecimal() else 0
    return number if 0 < number < 65536 else 0


def inner(found: object, *names: str) -> Any:
    """`found[a][b]`, None where a step is missing."""
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def objects_of(found: object) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
