"""Which files hold results, by name or shape, and the numbers in them: never a config's."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from boxcar.shared.files.receipt import Finding, Number
from boxcar.shared.metrics import measure, records, tfevents
from boxcar.shared.metrics.records import Point, Record

MOST_BYTES = 32 * 1024 * 1024
_MOST_KEYS = 200
_LINES, _CSV = (".jsonl", ".ndjson"), (".csv", ".tsv")
_EVENTS = "tfevents"
_COUNTERS = frozenset({"step", "global_step", "iteration"})
# What a training was given and what a library says of its own files: no result has such a name.
_GIVEN = re.compile(
    r"(.*[._-])?(config(uration)?|cfg|conf|args|arguments|(hyper[_-]?|h)?param(eter)?s|options?|opts?"
    r"|flags|settings)\.\w+|(tokenizer|vocab|(added|special)_tokens).*|model_index\.json|.+\.index\.json",
    re.IGNORECASE,
)
# Where results are, the surest name first.
_RESULTS = (
    re.compile(r"all_results\b"),
    re.compile(r"(.*[._-])?(metric|result|score)", re.IGNORECASE),
    re.compile(r"(.*[._-])?eval", re.IGNORECASE),
    re.compile(r"trainer_state\b"),
    re.compile(r"(.*[._-])?(history|progress|monitor)\b", re.IGNORECASE),
)


def may_be_one(path: str) -> bool:
    """By its name alone: whether it is worth a look."""
    name = _name(path)
    is_known = name.lower().endswith((".json", *_LINES, *_CSV)) or _EVENTS in name
    return is_known and not _GIVEN.fullmatch(name)


def is_named_so(path: str) -> bool:
    return not _GIVEN.fullmatch(_name(path)) and place(path) < len(_RESULTS)


def place(path: str) -> int:
    """Smaller is surer."""
    fits = (at for at, pattern in enumerate(_RESULTS) if pattern.match(_name(path)))
    return next(fits, len(_RESULTS))


def is_of_events(path: str) -> bool:
    return _EVENTS in _name(path)


def series_of_file(path: str, file: BinaryIO) -> dict[str, list[Point]]:
    """By key, all that a file with results says of it; nothing of another file, and of one that is
    damaged what comes before. Raises OSError.
    """
    if not may_be_one(path):
        return {}
    if is_of_events(path):
        return _of_events(file)
    try:
        rows = _rows(path, file.read(MOST_BYTES))
    except (ValueError, RecursionError, csv.Error):
        return {}
    found = _first(records.all_points(rows))
    is_one = is_named_so(path) or counts(found) or (len(rows) > 1 and records.axis_of(rows))
    return found if is_one else {}


def counts(numbers: Collection[str]) -> bool:
    """Whether a document says how far a training was; `epoch` may be how far it was told to go."""
    return not _COUNTERS.isdisjoint(numbers)


def _rows(path: str, data: bytes) -> Sequence[Record]:
    name = path.lower()
    if name.endswith(_CSV):
        return records.of_csv(data)
    return records.of_lines(data) if name.endswith(_LINES) else records.of_json(data)


def _of_events(file: BinaryIO) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for scalar in tfevents.scalars(file):
        if scalar.tag in found or len(found) < _MOST_KEYS:
            found.setdefault(scalar.tag, []).append((float(scalar.step), scalar.at, scalar.value))
    return found


def _first(found: Mapping[str, list[Point]]) -> dict[str, list[Point]]:
    return dict(list(found.items())[:_MOST_KEYS])


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# The numbers that a receipt proves of a cell: one function says them, for box and laptop.


# In the facts of a finding; and beside it, in those of a file that is read row by row.
NUMBERS, ROWS = "numbers", "rows"
_MOST, _LONGEST = 20, 200


def of_result(metrics: Sequence[Number], findings: Iterable[Finding]) -> dict[str, Any]:
    """Those that the job names, in its order, before those of the cell's files with results."""
    found: dict[str, Any] = measure.of_named(metrics)
    for finding in sorted(filter(_is_of_results, findings), key=_place):
        numbers = finding.facts.get(NUMBERS, {}).items()
        found |= {k: v for k, v in numbers if k not in found and isinstance(v, (int, float))}
    return found


def _is_of_results(finding: Finding) -> bool:
    """Older boxes took the numbers of every JSON document, a config's too."""
    path = finding.path
    if is_of_events(path):
        return True
    is_by_shape = ROWS in finding.facts or counts(finding.facts.get(NUMBERS, ()))
    return may_be_one(path) and (is_named_so(path) or is_by_shape)


def _place(finding: Finding) -> int:
    return place(finding.path)


def last_of_file(path: Path) -> dict[str, Any]:
    """Facts of a published file: the last of each of its numbers, where it is one with results and
    that is finite.
    """
    with path.open("rb") as file:
        series = series_of_file(path.name, file)
    last = {key[:_LONGEST]: points[-1][2] for key, points in series.items()}
    finite = {key: value for key, value in last.items() if math.isfinite(value)}
    return {NUMBERS: dict(list(finite.items())[:_MOST])} if finite else {}
