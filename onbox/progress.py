"""The last line of a cell's progress.jsonl, read from its end. The train script writes the file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"
_TAIL_BYTES = 8192
_MOST_FIELDS = 20
_LONGEST_TEXT = 200


def last(out: Path) -> dict[str, Any]:
    """The newest whole line that is a JSON object; empty where there is none."""
    for line in reversed(_tail(out / FILE)):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            return {
                key: record[key] for key in list(record)[:_MOST_FIELDS] if _is_plain(record[key])
            }
    return {}


def _tail(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).rpartition(b"\n")[0].split(b"\n")
    except OSError:
        return []


def _is_plain(value: object) -> bool:
    """A number that JSON knows (a loss may be NaN), or a short text."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= _LONGEST_TEXT)
