"""A number out of a log, a CSV or a JSON file. What is none raises NoNumberError with the reason.

A log is read in windows of whole lines, so that whoever reads can limit the time for each.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from boxcar.shared.metrics import records
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

WINDOW_BYTES = 64 * 1024
LONGEST_LINE = 4096  # characters; what is behind them is not looked at
MOST_LOG_BYTES = 64 * 1024 * 1024
MOST_FILE_BYTES = 16 * 1024 * 1024
_BREAK = re.compile(r"[\r\n]+")
_WHOLE = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_IS_A_DATE = re.compile(r"\.?\d")  # or a version: 27.11.2026, 1.2.3
_MAY_GO_ON = re.compile(r"[-+.\deE]*")
_NAN_NORM = re.compile(r"'grad_norm': '?-?(?:nan|inf)\b")
_NAMED, _LONGEST_SHOWN, _LONGEST_WHERE = 8, 40, 72
# How a note ends of what was found and is none; and of nothing.
NO_NUMBER, NOTHING = _("is not a number"), _("nothing was found")


@dataclass(frozen=True)
class Match:
    """What was found, and where: the line of a log, or the row of a CSV."""

    text: str
    where: str


class NoNumberError(ValueError):
    """Why there is no number, as a clause."""


def in_log(
    log: BinaryIO,
    begins_at: int,
    pattern: re.Pattern[str],
    on_window: Callable[[], None],
    is_growing: bool = False,
) -> Iterator[Match]:
    """What the group of the pattern matched, line by line, from `begins_at` bytes on.

    Of a log that is too long the last part. `on_window` is called before each window. Of one that
    grows a number that ends where the log ends is left out: its other half may be to come.
    """
    size_bytes = log.seek(0, io.SEEK_END)
    log.seek(max(begins_at if begins_at <= size_bytes else 0, size_bytes - MOST_LOG_BYTES))
    rest = b""
    while data := log.read(WINDOW_BYTES):
        on_window()
        whole, rest = _split(rest + data)
        yield from _matches(whole, pattern)
    on_window()
    yield from _matches(rest, pattern, is_growing)


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Whole lines and what is left of the last one, which is cut where it never ends."""
    at = max(data.rfind(b"\n"), data.rfind(b"\r"))
    if at < 0 and len(data) > WINDOW_BYTES:
        return b"", data[: 4 * LONGEST_LINE]
    return data[: at + 1], data[at + 1 :]


def _matches(data: bytes, pattern: re.Pattern[str], is_growing: bool = False) -> Iterator[Match]:
    for line in _BREAK.split(data.decode("utf-8", "replace")):
        ends_at = 0
        for match in pattern.finditer(line[:LONGEST_LINE]):
            if match[1] is None or match.start(1) < ends_at:
                continue
            ends_at = _whole_end(line, match)
            if not (is_growing and _MAY_GO_ON.fullmatch(line, ends_at)):
                text = _truthful(line[match.start(1) : ends_at], line)
                yield Match(text, _around(line, match.start(1), ends_at))


def _around(line: str, begins_at: int, ends_at: int) -> str:
    """The line, or of a long one what is around the number."""
    if len(line) <= _LONGEST_WHERE:
        return line.strip()
    before = max(0, min(begins_at, ends_at - _LONGEST_WHERE // 2) - _LONGEST_WHERE // 2)
    return line[before : before + _LONGEST_WHERE].strip()


def _truthful(text: str, line: str) -> str:
    is_nan = _NAN_NORM.search(line) and finite_number(text) == 0
    return records.NAN_AS_ZERO if is_nan else text


def _whole_end(line: str, match: re.Match[str]) -> int:
    """Where the group ends, or the number that begins with it: `([0-9.]+)` stops in `9.5e-05`."""
    begins_at, ends_at = match.span(1)
    whole = _WHOLE.match(line, begins_at)
    if whole is None or _IS_A_DATE.match(line, whole.end()):
        return ends_at
    return max(ends_at, whole.end())


def in_csv(data: bytes, column: str) -> Iterator[Match]:
    """The column's cells, but for empty ones: some loggers fill another part of each row."""
    names, rows = records.table(data)
    if column not in names:
        has = ", ".join(names[:_NAMED]) or "none"
        raise NoNumberError(_("no column {column!r}; columns: {has}", column=column, has=has))
    at = names.index(column)
    try:
        for number, row in enumerate(rows, start=1):
            if len(row) > at and row[at].strip():
                yield Match(row[at], f"row {number}")
    except csv.Error as error:
        raise NoNumberError(_("not a CSV file: {error}", error=error)) from error


def in_json(data: bytes, key: str) -> Iterator[Match]:
    """What lies at the key, in which a dot leads into an object, unless a key is spelled with it;
    of JSON Lines and of a trainer's history more than once.
    """
    try:
        rows = records.of_json(data)
    except (ValueError, RecursionError) as error:
        raise NoNumberError(_("not JSON: {error}", error=error)) from error
    found = list(records.at_key(rows, key))
    if not found:
        raise NoNumberError(_("no key {key!r}", key=key))
    for place, value in found:
        where = f"line {place + 1}" if len(rows) > 1 else key
        yield Match(value if value is records.NAN_AS_ZERO else json.dumps(value), where)


def chosen(found: Iterable[Match], best: str | None) -> tuple[float, Match]:
    """The best of the numbers, or the last. One that is none is no best, and no last either."""
    kept: tuple[float, Match] | None = None
    odd: str | None = None
    for match in found:
        number = finite_number(match.text)
        if number is None:
            odd = match.text
            kept = kept if best else None
        elif kept is None or _is_better(number, kept[0], best):
            kept = number, match
    if kept is not None:
        return kept
    if odd is None:
        raise NoNumberError(NOTHING)
    raise NoNumberError(_("{path} {problem}", path=_shown(odd), problem=NO_NUMBER))


def _is_better(number: float, before: float, best: str | None) -> bool:
    return best is None or (number < before if best == "min" else number > before)


def finite_number(text: str) -> float | None:
    number = any_number(text)
    return number if number is not None and math.isfinite(number) else None


def any_number(text: str) -> float | None:
    """Also NaN."""
    if text is records.NAN_AS_ZERO:
        return math.nan
    # At the end of a sentence a pattern such as ([0-9.]+) takes its dot along.
    return records.number_of_text(text.strip().rstrip(".,;"))


def _shown(value: object) -> str:
    if value is records.NAN_AS_ZERO:
        return records.NAN_AS_ZERO
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
