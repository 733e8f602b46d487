"""A cell's progress, below {out}: JSON Lines, one object for each line that the script reports.

`step` is a whole number, `at` a time, all else is the script's own. The script writes the file and
does not fsync it: its last lines may be lost with the box, and a line may be no JSON.
"""

from __future__ import annotations

import json
from typing import Any

FILE = "progress.jsonl"


def to_line(record: dict[str, Any]) -> bytes:
    """Raises ValueError for a number that JSON does not have."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a surrogate pair is text in Python and in no file.
    return line.encode("utf-8", "replace")


def parse_line(line: bytes) -> dict[str, Any] | None:
    """None for a line that is no JSON object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
