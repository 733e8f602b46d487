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
from typing import Any, BinaryIO

WINDOW_BYTES = 64 * 1024
LONGEST_LINE = 4096  # characters; what is behind them is not looked at
MOST_LOG_BYTES = 64 * 1024 * 1024
MOST_FILE_BYTES = 16 * 1024 * 1024
_BREAK = re.compile(r"[\r\n]+")
_WHOLE = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_IS_A_DATE = re.compile(r"\.?\d")  # or a version: 27.11.2026, 1.2.3
_MAY_GO_ON = re.compile(r"[-+.\deE]*")
_NAMED = 8
# How a note ends of what was found and is none; and of nothing.
NO_NUMBER, NOTHING = "is not a number", "nothing was found"


class NoNumberError(ValueError):
    """Why there is no number, as a clause."""


def in_log(
    log: BinaryIO,
    begins_at: int,
    pattern: re.Pattern[str],
    on_window: Callable[[], None],
    is_growing: bool = False,
) -> Iterator[str]:
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


def _matches(data: bytes, pattern: re.Pattern[str], is_growing: bool = False) -> Iterator[str]:
    for line in _BREAK.split(data.decode("utf-8", "replace")):
        ends_at = 0
        for match in pattern.finditer(line[:LONGEST_LINE]):
            if match[1] is None or match.start(1) < ends_at:
                continue
            ends_at = _whole_end(line, match)
            if not (is_growing and _MAY_GO_ON.fullmatch(line, ends_at)):
                yield line[match.start(1) : ends_at]


def _whole_end(line: str, match: re.Match[str]) -> int:
    """Where the group ends, or the number that begins with it: `([0-9.]+)` stops in `9.5e-05`."""
    begins_at, ends_at = match.span(1)
    whole = _WHOLE.match(line, begins_at)
    if whole is None or _IS_A_DATE.match(line, whole.end()):
        return ends_at
    return max(ends_at, whole.end())


def in_csv(data: bytes, column: str) -> Iterator[str]:
    """The column's cells, but for empty ones: some loggers fill another part of each row."""
    text = data.decode("utf-8-sig", "replace")
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = [name.strip() for name in next(rows, [])]
    if column not in names:
        has = ", ".join(names[:_NAMED]) or "none"
        raise NoNumberError(f"no column {column!r}; its columns are {has}")
    at = names.index(column)
    try:
        yield from (row[at] for row in rows if len(row) > at and row[at].strip())
    except csv.Error as error:
        raise NoNumberError(f"not a CSV file: {error}") from error


def in_json(data: bytes, key: str) -> float:
    """The number at `key`, in which a dot leads into an object, unless a key is spelled with it."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NoNumberError(f"not JSON: {error}") from error
    for part in _steps(found, key):
        if not isinstance(found, dict) or part not in found:
            raise NoNumberError(f"no key {key!r}")
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise NoNumberError(f"{_shown(found)} at {key!r} {NO_NUMBER}")
    try:
        number = float(found)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NoNumberError(f"{number} at {key!r} {NO_NUMBER}")
    return number


def _steps(document: Any, key: str) -> list[str]:
    return [key] if isinstance(document, dict) and key in document else key.split(".")


def chosen(texts: Iterable[str], best: str | None) -> float:
    """The best of the numbers, or the last. One that is none is no best, and no last either."""
    found: float | None = None
    odd: str | None = None
    for text in texts:
        number = _number(text)
        if number is None:
            odd = text
            found = found if best else None
        elif best is None or found is None:
            found = number
        else:
            found = min(found, number) if best == "min" else max(found, number)
    if found is not None:
        return found
    raise NoNumberError(NOTHING if odd is None else f"{_shown(odd)} {NO_NUMBER}")


def _number(text: str) -> float | None:
    # At the end of a sentence a pattern such as ([0-9.]+) takes its dot along.
    try:
        number = float(text.strip().rstrip(".,;"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
