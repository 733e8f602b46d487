"""The records of what libraries write beside a training: JSON, JSON Lines and CSV, row by row, and
the numbers in them. Pure.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from boxcar.shared import timestamp

# As many points of a series as a person can look at.


MOST_POINTS = 2000

P = TypeVar("P")


def thin(points: Sequence[P], most: int = MOST_POINTS) -> list[P]:
    """At most so many, as far from each other as before, with the first and the last."""
    last = len(points) - 1
    if last < most:
        return list(points)
    return [points[number * last // (most - 1)] for number in range(most)]


# Numbers that scripts report beside those that they are about.


NOT_METRICS = (
    "step",
    "total_steps",
    "epoch",
    "at",
    "time",
    "epochs",
    "best_epoch",
    "seconds",
    "params",
    "world_size",
    # Of Ray, SB3, transformers and LLaMA-Factory: how far it was, and when.
    "current_steps",
    "global_step",
    "iter",
    "iteration",
    "iterations_since_restore",
    "pid",
    "time/iterations",
    "time/time_elapsed",
    "time/total_timesteps",
    "time_since_restore",
    "time_this_iter_s",
    "time_total_s",
    "timestamp",
    "timesteps",
    "total_flos",
    "total_timesteps",
    "training_iteration",
    "wall_time",
)


Record = dict[str, Any]
# Step and time (in seconds since 1970) where it tells them, and the value, which may be NaN.
Point = tuple[float | None, float | None, float]

# By what rows are counted, the finest first.
AXES = (
    *("step", "global_step", "current_steps", "iteration", "iter", "training_iteration"),
    *("time/total_timesteps", "total_timesteps", "timesteps", "epoch"),
)
# transformers writes a loss that is not finite as 0; its gradients say so.
NAN_AS_ZERO = "0 beside a grad_norm that is not finite, as transformers logs a loss of NaN,"
_LOSS, _NORM = "loss", "grad_norm"
_EPOCH, _AT, _STAMPS = "epoch", "at", ("timestamp", "_timestamp", "wall_time")
_SINCE_S, _UNTIL_S = 1e9, 1e11
_HISTORY, _BEST = "log_history", "best_metric"
_NONFINITE = "nonfinite"  # what became null in a progress file because it was not finite


def of_json(data: bytes) -> list[Record]:
    """Of a document: what a trainer has logged, the rows of a list or of Keras' history, and last
    the document itself; else each line of JSON Lines. Raises ValueError, RecursionError.
    """
    try:
        document = json.loads(data)
    except ValueError:
        json.loads(data.lstrip().partition(b"\n")[0])
        return of_lines(data)
    if isinstance(document, list):
        return _rows(document)
    if not isinstance(document, dict):
        return []
    history = document.get(_HISTORY)
    return _rows([*(history if isinstance(history, list) else _by_columns(document)), document])


def of_lines(data: bytes) -> list[Record]:
    """One document a line; what is none is left out, such as a last line that was cut off."""
    found = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return _rows(found)


def _rows(found: Sequence[Any]) -> list[Record]:
    return [_truthful(row) for row in found if isinstance(row, dict)]


def _truthful(row: Record) -> Record:
    norm = row.get(_NORM)
    is_nan = isinstance(norm, float) and not math.isfinite(norm)
    return row | {_LOSS: NAN_AS_ZERO} if is_nan and row.get(_LOSS) == 0 else row


def _by_columns(document: Record) -> list[Record]:
    """Of a history such as {"loss": [0.5, 0.4], "acc": [0.7, 0.8]}, where all is so."""
    lists = [value if isinstance(value, list) else [] for value in document.values()]
    lengths = {len(each) for each in lists}
    if len(lengths) != 1 or 0 in lengths:
        return []
    return [dict(zip(document, row, strict=True)) for row in zip(*lists, strict=True)]


def table(data: bytes) -> tuple[list[str], Iterator[list[str]]]:
    """The names and the rows of a CSV. The rows may raise csv.Error."""
    names, rows = csv_of(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""))
    return names, (row for _, row in rows)


def csv_of(
    lines: Iterator[str], *, is_strict: bool = False
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The names, and the rows with the number of each one's last line.

    Lines before the names that begin with # are comments, such as that of Stable-Baselines3's
    monitor; where only numbers follow, as behind NumPy's savetxt, the last of them has the names.
    """
    comments = []
    for first in lines:
        if not first.startswith("#"):
            break
        comments.append(first)
    else:
        first = ""
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=is_strict)
    numbered = ((len(comments) + rows.line_num, row) for row in rows)
    before = next(numbered, (0, []))
    if comments and before[1] and all(number_of_text(field) is not None for field in before[1]):
        names = comments[-1].lstrip("#").split(delimiter)
        if len(names) == len(before[1]):
            return [name.strip() for name in names], itertools.chain([before], numbered)
    return [name.strip() for name in before[1]], numbered


def of_csv(data: bytes) -> list[Record]:
    """Numbers where a field is one; an empty field is none. Raises csv.Error."""
    names, rows = table(data)
    return [
        {
            name: field if (found := number_of_text(field)) is None else found
            for name, field in zip(names, row, strict=False)
            if field.strip()
        }
        for row in rows
    ]


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def number_of_text(text: str) -> float | None:
    """As people write one: Python's own 1_000 is none."""
    with contextlib.suppress(ValueError):
        return float(text) if "_" not in text and text.isascii() else None
    return None


def at_key(rows: Sequence[Record], key: str) -> Iterator[tuple[int, Any]]:
    """What lies at a key, with the row's place; a dot leads into an object, unless a key is spelled
    with it.
    """
    for place, row in enumerate(rows):
        found: Any = row
        for part in [key] if key in row else key.split("."):
            if not isinstance(found, dict) or part not in found:
                break
            found = found[part]
        else:
            yield place, found


def points(rows: Sequence[Record], key: str) -> list[Point]:
    """The whole series of one key."""
    places = _places(rows)
    return [
        (*places[place], value)
        for place, found in at_key(rows, key)
        if (value := _value(found)) is not None
    ]


def all_points(rows: Sequence[Record]) -> dict[str, list[Point]]:
    """The whole series of each key of the rows that is a number."""
    places, found = _places(rows), dict[str, list[Point]]()
    for place, whole in zip(places, rows, strict=True):
        row = {_BEST: whole.get(_BEST)} if _HISTORY in whole else whole
        lost = row.get(_NONFINITE)
        nothing = dict.fromkeys(map(str, lost), math.nan) if isinstance(lost, list) else {}
        for key, each in (nothing | {k: v for k, v in row.items() if v is not None}).items():
            if (value := _value(each)) is not None:
                found.setdefault(key, []).append((*place, value))
    return found


def _value(found: Any) -> float | None:
    return math.nan if found is NAN_AS_ZERO else number(found)


def _places(rows: Sequence[Record]) -> list[tuple[float | None, float | None]]:
    axis = axis_of(rows)
    steps = [number(row.get(axis)) if axis else None for row in rows]
    if _counts_within_epochs(rows, steps):
        steps = [None] * len(rows)
    finite = (step if step is not None and math.isfinite(step) else None for step in steps)
    return [(step, _at(row)) for step, row in zip(finite, rows, strict=True)]


def axis_of(rows: Sequence[Record]) -> str | None:
    return next((axis for axis in AXES if any(axis in row for row in rows)), None)


def _counts_within_epochs(rows: Sequence[Record], steps: Sequence[float | None]) -> bool:
    """Whether the step begins anew with an epoch; one that goes back with it was resumed."""
    before: tuple[float, float] | None = None
    for row, step in zip(rows, steps, strict=True):
        epoch = number(row.get(_EPOCH))
        if epoch is None or step is None:
            continue
        if before and epoch > before[0] and step < before[1]:
            return True
        before = (epoch, step)
    return False


def _at(row: Record) -> float | None:
    with contextlib.suppress(ValueError, TypeError):
        if _AT in row:
            return timestamp.parse_utc(row[_AT]).timestamp()
    stamps = (number(row.get(name)) for name in _STAMPS)
    return next((at for at in stamps if at is not None and _SINCE_S < at < _UNTIL_S), None)
