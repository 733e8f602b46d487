"""Whether an exported table still agrees with its receipt: it is made again, and compared.

A LaTeX or Markdown table may stand within a paper: what lies between the two comments counts.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.report.as_text import BEGIN, END
from boxcar.laptop.report.run_report import Asked
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

_HEAD = re.compile(rf"{BEGIN}; receipt ([0-9a-f+]+); (\{{.*\}})")
_MOST = 5
_LONGEST = 200  # characters


@dataclass(frozen=True)
class Exported:
    """What a file says of itself: its kind, the receipt, what was asked for, and its content."""

    kind: str
    receipt: str
    asked: Asked
    content: Any


def read(text: str, name: str) -> Exported:
    """Raises InputError for a file that `report` did not write."""
    if found := _of_json(text):
        return found
    if text.startswith("run,group,cell,") and (found := _of_csv(text)):
        return found
    kind = "html" if text.startswith("<!doctype html>") else "latex" if "% " + BEGIN in text else ""
    head = _HEAD.search(text.replace("&#34;", '"').replace("- -", "--"))
    if head is None:
        raise InputError(
            f"{name}: not a report: expected the line {BEGIN!r}; receipt …, which `report` writes "
            "into each export"
        )
    content = text if kind == "html" else _block(text, name)
    return Exported(kind or "md", head[1], _asked(head[2], name), content)


def _of_json(text: str) -> Exported | None:
    try:
        value = json.loads(text)
        asked = codec.decode(Asked, value["asked"], "asked")
        receipts = "+".join(value["receipts"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Exported("json", receipts, asked, {k: v for k, v in value.items() if k != "format"})


def _of_csv(text: str) -> Exported | None:
    """A table of cells says all that was asked for by its runs."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or "receipt" not in rows[0]:
        return None
    receipts = dict.fromkeys((row["run"], row["receipt"]) for row in rows)
    runs = tuple(run for run, _ in receipts)
    return Exported("csv", "+".join(digest for _, digest in receipts), Asked(runs), text)


def _asked(spelled: str, name: str) -> Asked:
    try:
        return codec.decode(Asked, json.loads(spelled), name)
    except ValueError as error:
        raise InputError(f"{name}: what was asked for cannot be read: {error}") from None


def _block(text: str, name: str) -> str:
    begin, end = text.find(BEGIN), text.rfind(END)
    if end < begin:
        raise InputError(f"{name}: expected {END!r} behind its table; a part of it is missing")
    return text[begin : text.find("\n", end)]


def differences(exported: Exported, expected: str) -> list[str]:
    """Where it is not what the receipt gives now; `expected` is the same export, made anew."""
    found = read(expected, "the report made anew").content
    if exported.kind == "json":
        return list(_unequal("", exported.content, found))[:_MOST]
    return _lines(_spelled(exported.content), _spelled(found))


def _spelled(content: str) -> list[str]:
    """Lines without their spaces at the ends: an editor may have changed those."""
    return [" ".join(line.split()) for line in content.splitlines() if line.strip()]


def _lines(given: Sequence[str], expected: Sequence[str]) -> list[str]:
    """The receipt's digest stands in the first line and has a sentence of its own."""
    told = [
        line
        for line in difflib.ndiff(_without_head(expected), _without_head(given))
        if line[:2] in ("- ", "+ ")
    ]
    words = {"- ": "expected", "+ ": "found"}
    return [f"{words[line[:2]]}: {_short(line[2:])}" for line in told[: 2 * _MOST]]


def _short(line: str) -> str:
    """A chart is one line of a page, and nobody reads it."""
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _without_head(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if BEGIN + ";" not in line]


def _unequal(path: str, given: Any, expected: Any) -> list[str]:
    if isinstance(given, Mapping) and isinstance(expected, Mapping):
        keys = dict.fromkeys([*expected, *given])
        return [
            each
            for key in keys
            for each in _unequal(f"{path}.{key}".strip("."), given.get(key), expected.get(key))
        ]
    if isinstance(given, list) and isinstance(expected, list) and len(given) == len(expected):
        pairs = enumerate(zip(given, expected, strict=True))
        return [each for at, (one, two) in pairs for each in _unequal(f"{path}[{at}]", one, two)]
    return [] if given == expected else [f"{path}: expected {expected!r}, found {given!r}"]
