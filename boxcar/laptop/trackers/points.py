"""What a cell reported while it trained, by its steps: NaN stays NaN, and a gap stays a gap."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boxcar.laptop.trackers.exported_cell import Point
from boxcar.shared import timestamp
from boxcar.shared.files import progress

STEP, AT, NONFINITE = "step", "at", "nonfinite"
_NOT_SERIES = (STEP, AT, NONFINITE, "dropped")


def of_file(path: Path, began_s: float) -> tuple[Point, ...]:
    """Raises OSError. A line without a time has that of the line before, else `began_s`."""
    with path.open("rb") as file:
        return of_lines(file, began_s)


def of_lines(lines: Iterable[bytes], began_s: float) -> tuple[Point, ...]:
    """In the order of the steps. A resume says its steps again: then what was said last counts."""
    values: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    at = began_s
    for number, line in enumerate(lines, start=1):
        if (record := progress.parse_line(line)) is None:
            continue
        step, at = _step(record, number), _at(record, at)
        values.setdefault(step, {}).update(_numbers(record))
        times[step] = at
    return tuple(Point(step, times[step], values[step]) for step in sorted(values) if values[step])


def _step(record: Mapping[str, Any], number: int) -> int:
    """The script's own, else the number of the line: trackers take whole steps only."""
    found = _number(record.get(STEP))
    return int(found) if found is not None and math.isfinite(found) else number


def _at(record: Mapping[str, Any], before_s: float) -> float:
    with contextlib.suppress(ValueError, TypeError):
        return timestamp.parse_utc(record[AT]).timestamp() if AT in record else before_s
    return before_s


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """What became null because it was not finite is NaN."""
    lost = record.get(NONFINITE)
    found = {str(key): math.nan for key in lost} if isinstance(lost, list) else {}
    for key, value in record.items():
        number = _number(value)
        if key not in _NOT_SERIES and number is not None:
            found[key] = number
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    with contextlib.suppress(OverflowError):
        return float(value)
    return None
