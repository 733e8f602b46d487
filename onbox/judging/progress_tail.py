"""The last line of a cell's progress.jsonl, read from its end. The train script writes the file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from boxcar.shared.disk import regular_file
from boxcar.shared.files import progress

_TAIL_BYTES = 8192
_MOST_FIELDS = 20
_LONGEST_TEXT = 200


def last(out: Path) -> dict[str, Any]:
    """The newest whole line that is a JSON object; empty where there is none."""
    for line in reversed(_tail(out)):
        record = progress.parse_line(line)
        if record is not None:
            fields = list(record.items())[:_MOST_FIELDS]
            return {name: _told(value) for name, value in fields if _is_plain(value)}
    return {}


def _tail(out: Path) -> list[bytes]:
    try:
        with regular_file.open_left(out, progress.FILE) as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).rpartition(b"\n")[0].split(b"\n")
    except OSError:
        return []


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (
        isinstance(value, str) and len(value) <= _LONGEST_TEXT
    )


def _told(value: Any) -> Any:
    """JSON has no NaN, and a loss that became one is what people want to hear of."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
