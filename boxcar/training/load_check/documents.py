"""Results that are text: JSON, JSON Lines and CSV. Standard library only.

Each function returns the problems of a file, as sentences, and the facts about it. Not covered:
schemas, and whether a number makes sense.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.shared.metrics import records
from boxcar.shared.sentence import _, chained, mark
from boxcar.training.load_check import survey
from boxcar.training.load_check.refusals import How, NotItsKindError

_NAMED = 10
_LARGEST_GUESS_BYTES = 64 * 1024 * 1024


def look_at_json(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """One standard JSON document; or JSON Lines, as Ray, mmengine and pandas name them, too."""
    data = path.read_bytes()
    try:
        value = json.loads(data)
    except ValueError as error:
        if not _begins_with_document(data):
            raise NotItsKindError(_("is not JSON: {error}", error=error)) from error
        return look_at_jsonl(path, keys, how)
    columns: dict[str, _Column] = {}
    problems = _take("", value, columns)
    wrong, gaps = _judged(columns)
    problems += [*wrong, *survey.missing_keys(value, keys), *_no_metrics(path, value)]
    return [*problems, *_missing_shards(path, value)], gaps


def _begins_with_document(data: bytes) -> bool:
    with contextlib.suppress(ValueError):
        json.loads(data.lstrip().partition(b"\n")[0])
        return True
    return False


def _missing_shards(path: Path, value: Any) -> list[str]:
    """Of an index as transformers writes it: the files that it names and that are not beside it."""
    of = value.get("weight_map") if isinstance(value, dict) else None
    if not path.name.endswith(".index.json") or not isinstance(of, dict):
        return []
    names = dict.fromkeys(name for name in of.values() if isinstance(name, str))
    return _first(
        [
            _("names {name!r}, which is not beside it", name=name)
            for name in names
            if not (path.parent / name).is_file()
        ]
    )


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


def look_at_jsonl(
    path: Path, keys: Sequence[str], ignored: How
) -> tuple[list[str], dict[str, Any]]:
    """One JSON document a line. A key must be in some line: not all lines are alike."""
    problems: list[str] = []
    seen: dict[str, Any] = {}
    columns: dict[str, _Column] = {}
    rows = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except ValueError as error:
                problems.append(_("line {number} is not JSON: {error}", number=number, error=error))
                continue
            rows += 1
            _take("[]", value, columns)
            seen |= value if isinstance(value, dict) else {}
    if problems:
        raise NotItsKindError(chained(mark("{first}; {second}"), _first(problems)))
    wrong, gaps = _judged(columns)
    wrong += [*survey.missing_keys(seen, keys), *_no_metrics(path, rows or seen)]
    return wrong, {"rows": rows} | gaps


def look_at_csv(path: Path, keys: Sequence[str], ignored: How) -> tuple[list[str], dict[str, Any]]:
    """A header and at least one row, all with the same number of fields. Keys are columns.

    A column of numbers that ends in NaN or Inf, or holds nothing else, is a problem; `gaps` counts
    the fields of such columns that are empty or not finite.
    """
    columns: dict[int, _Column] = {}
    try:
        # utf-8-sig: spreadsheets begin a file with a byte order mark. Texts may be of another
        # encoding, such as GBK, in which no byte of a letter is a comma, a quote or a line's end.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            header, rows = records.csv_of(_without_nul(file), is_strict=True)
            count = _check_rows(rows, len(header), columns)
    except csv.Error as error:
        raise NotItsKindError(_("is not CSV: {error}", error=error)) from error
    problems, gaps = _judged({header[at]: column for at, column in columns.items()})
    problems += survey.missing_keys(dict.fromkeys(header), keys)
    return problems, {"rows": count, "columns": len(header)} | gaps


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise csv.Error(_("it holds a NUL"))
        yield line


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
            return _("holds nothing but {last}", last=self.last)
        return "" if math.isfinite(float(self.last)) else _("ends in {last}", last=self.last)


def _check_rows(
    rows: Iterator[tuple[int, list[str]]], columns: int, by_column: dict[int, _Column]
) -> int:
    """How many there are."""
    problems, count = [], 0
    for line, fields in rows:
        if not fields:
            continue
        count += 1
        if len(fields) != columns:
            problems.append(
                _(
                    "line {line} has {n} fields, the header {columns}",
                    line=line,
                    n=len(fields),
                    columns=columns,
                )
            )
        for at, field in enumerate(fields[:columns]):
            by_column.setdefault(at, _Column()).take(field)
    if not count:
        problems.append(_("has no row below its header"))
    if problems:
        raise NotItsKindError(chained(mark("{first}; {second}"), _first(problems)))
    return count


def _no_metrics(path: Path, value: Any) -> list[str]:
    """An empty document may be right, but not as the metrics of a training."""
    is_empty = value in ({}, [], None, "")
    return (
        [_("holds no metrics: it is empty")] if is_empty and "metrics" in path.stem.lower() else []
    )


def _judged(columns: Mapping[str, _Column]) -> tuple[list[str], dict[str, int]]:
    """The problems of those that are of numbers, and the fact how many gaps they have."""
    numbers = {name: column for name, column in columns.items() if column.is_of_numbers}
    wrong = [
        _("{path} {problem}", path=name.removeprefix("[]."), problem=column.problem)
        for name, column in numbers.items()
        if column.problem
    ]
    gaps = sum(column.gaps for column in numbers.values())
    return _first(wrong), {"gaps": gaps} if gaps else {}


def _take(path: str, value: Any, columns: dict[str, _Column]) -> list[str]:
    """The numbers of a document. Python reads NaN and Infinity where standard JSON has no such
    word: a problem but in a list of objects and in JSON Lines, of which a key is judged as a column
    of CSV is. A first gradient may well be Inf.
    """
    wrong = []
    for place, leaf in _leaves(path, value):
        if "[]" in place and type(leaf) in (int, float):
            columns.setdefault(place, _Column()).take(str(leaf))
        elif isinstance(leaf, float) and not math.isfinite(leaf):
            wrong.append(
                _(
                    "{what} is {leaf}: expected a finite number",
                    what=place or _("the document"),
                    leaf=json.dumps(leaf),
                )
            )
    return _first(wrong)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Each value that holds no others, with its path, in which [] stands for any row of a list."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, each)
    elif isinstance(value, list):
        is_of_rows = bool(value) and all(isinstance(each, dict) for each in value)
        for at, each in enumerate(value):
            place = f"{path}[]" if is_of_rows else f"{path}.{at}" if path else str(at)
            yield from _leaves(place, each)
    else:
        yield path, value


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that every reader of JSON can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _first(problems: Sequence[str]) -> list[str]:
    more = len(problems) - _NAMED
    return [*problems[:_NAMED], *[_("{more} more like these", more=more)] * (more > 0)]
