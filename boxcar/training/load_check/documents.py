"""Results that are text: JSON, JSON Lines and CSV. Standard library only.

Each function returns the problems of a file, as sentences, and the facts about it. Not covered:
schemas, and whether a number makes sense.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxcar.training.load_check import tree

_NAMED = 10
_NUMBERS = 20


def look_at_json(path: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """One standard JSON document. `numbers` are its top-level finite ones, for tables."""
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        return [f"is not JSON: {error}"], {}
    return [*_nonfinite(value), *tree.missing(value, keys)], {"numbers": _numbers(value)}


def look_at_jsonl(path: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """One JSON document a line. A key must be in some line: not all lines are alike."""
    problems: list[str] = []
    seen: dict[str, Any] = {}
    rows = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except ValueError as error:
                problems.append(f"line {number} is not JSON: {error}")
                continue
            rows += 1
            problems.extend(f"line {number}: {problem}" for problem in _nonfinite(value))
            seen |= value if isinstance(value, dict) else {}
    return [*_first(problems), *tree.missing(seen, keys)], {"rows": rows}


def look_at_csv(path: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """A header and at least one row, all with the same number of fields. Keys are columns."""
    try:
        # utf-8-sig: spreadsheets begin a file with a byte order mark.
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            problems, count = _check_rows(rows, len(header))
    except (csv.Error, UnicodeDecodeError) as error:
        return [f"is not CSV: {error}"], {}
    problems += tree.missing(dict.fromkeys(header), keys)
    return problems, {"rows": count, "columns": len(header)}


def _check_rows(rows: Any, columns: int) -> tuple[list[str], int]:
    problems, count = [], 0
    for fields in rows:
        if not fields:
            continue
        count += 1
        if len(fields) != columns:
            problems.append(f"line {rows.line_num} has {len(fields)} fields, the header {columns}")
    if not count:
        problems.append("has no row below its header")
    return _first(problems), count


def _nonfinite(value: Any) -> list[str]:
    """Python reads NaN and Infinity where standard JSON has no such word."""
    wrong = [
        f"{path or 'the document'} is {leaf}, which is not standard JSON"
        for path, leaf in tree.leaves(value)
        if isinstance(leaf, float) and not math.isfinite(leaf)
    ]
    return _first(wrong)


def _numbers(value: Any) -> dict[str, float]:
    items = value.items() if isinstance(value, dict) else ()
    finite = {
        name[: tree.LONGEST_PATH]: number for name, number in items if is_finite_number(number)
    }
    return dict(list(finite.items())[:_NUMBERS])


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that every reader of JSON can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _first(problems: list[str]) -> list[str]:
    more = len(problems) - _NAMED
    return problems[:_NAMED] + ([f"{more} more like these"] if more > 0 else [])
