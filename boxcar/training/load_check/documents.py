"""Results that are text: JSON, JSON Lines and CSV. Standard library only.

Each function returns the problems of a file, as sentences, and the facts about it. Not covered:
schemas, and whether a number makes sense.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.training.load_check import tree

_NAMED = 10
_LARGEST_GUESS_BYTES = 64 * 1024 * 1024


def look_at_json(path: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """One standard JSON document."""
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        return [f"is not JSON: {error}"], {}
    return [*_nonfinite(value), *tree.missing(value, keys), *_no_metrics(path, value)], {}


def is_json(path: Path) -> bool:
    """Whether a file whose name does not say so is a JSON document."""
    with path.open("rb") as file:
        if file.read(64).lstrip()[:1] not in (b"{", b"["):
            return False
        if file.seek(0, 2) > _LARGEST_GUESS_BYTES:
            return False
        file.seek(0)
        try:
            json.load(file)
        except (ValueError, RecursionError):
            return False
    return True


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
    problems = [
        *_first(problems),
        *tree.missing(seen, keys),
        *_no_metrics(path, rows or seen),
    ]
    return problems, {"rows": rows}


def look_at_csv(path: Path, keys: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """A header and at least one row, all with the same number of fields. Keys are columns.

    A column of numbers that ends in NaN or Inf, or holds nothing else, is a problem; `gaps` counts
    the fields of such columns that are empty or not finite.
    """
    columns: dict[int, _Column] = {}
    try:
        # utf-8-sig: spreadsheets begin a file with a byte order mark.
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            problems, count = _check_rows(rows, len(header), columns)
    except (csv.Error, UnicodeDecodeError) as error:
        return [f"is not CSV: {error}"], {}
    problems += tree.missing(dict.fromkeys(header), keys)
    numbers = {header[at]: column for at, column in columns.items() if column.is_of_numbers}
    problems += _first(
        [f"{name} {column.problem}" for name, column in numbers.items() if column.problem]
    )
    gaps = sum(column.gaps for column in numbers.values())
    return problems, {"rows": count, "columns": len(header)} | ({"gaps": gaps} if gaps else {})


@dataclass
class _Column:
    """What the fields of one column were, told one after the other."""

    finite: int = 0
    infinite: int = 0  # NaN too
    empty: int = 0
    texts: int = 0
    last: str = ""  # the last field that is not empty

    def take(self, field: str) -> None:
        field = field.strip()
        if not field:
            self.empty += 1
            return
        self.last = field
        try:
            is_finite = math.isfinite(float(field))
        except ValueError:
            self.texts += 1
            return
        self.finite += is_finite
        self.infinite += not is_finite

    @property
    def is_of_numbers(self) -> bool:
        return not self.texts and bool(self.finite or self.infinite)

    @property
    def gaps(self) -> int:
        return self.empty + self.infinite

    @property
    def problem(self) -> str:
        if not self.finite:
            return f"holds nothing but {self.last}"
        return "" if math.isfinite(float(self.last)) else f"ends in {self.last}"


def _check_rows(rows: Any, columns: int, by_column: dict[int, _Column]) -> tuple[list[str], int]:
    problems, count = [], 0
    for fields in rows:
        if not fields:
            continue
        count += 1
        if len(fields) != columns:
            problems.append(f"line {rows.line_num} has {len(fields)} fields, the header {columns}")
        for at, field in enumerate(fields[:columns]):
            by_column.setdefault(at, _Column()).take(field)
    if not count:
        problems.append("has no row below its header")
    return _first(problems), count


def _no_metrics(path: Path, value: Any) -> list[str]:
    """An empty document may be right, but not as the metrics of a training."""
    is_empty = value in ({}, [], None, "")
    return ["holds no metrics: it is empty"] if is_empty and "metrics" in path.stem.lower() else []


def _nonfinite(value: Any) -> list[str]:
    """Python reads NaN and Infinity where standard JSON has no such word."""
    wrong = [
        f"{path or 'the document'} is {leaf}, which is not standard JSON"
        for path, leaf in tree.leaves(value)
        if isinstance(leaf, float) and not math.isfinite(leaf)
    ]
    return _first(wrong)


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that every reader of JSON can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _first(problems: list[str]) -> list[str]:
    more = len(problems) - _NAMED
    return problems[:_NAMED] + ([f"{more} more like these"] if more > 0 else [])
