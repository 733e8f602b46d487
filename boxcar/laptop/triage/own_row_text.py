"""A signature of a person's own as YAML, made from how a log ended; to be read before it counts."""

from __future__ import annotations

import re

from boxcar.shared.triage.cause import Cause

_HEAD = "# Signatures of your own: they come before Boxcar's. See docs/failures.md\nsignatures:\n"
_LONGEST_PATTERN = 200
_ID = re.compile(r"^  - id: OWN-(\d+)$", re.MULTILINE)


def added_row(before: str, cause: Cause) -> str:
    """The file with one row more at its end."""
    text = before if before.strip() else _HEAD
    number = 1 + max((int(found) for found in _ID.findall(text)), default=0)
    rows = (
        f"  - id: OWN-{number}",
        f"    follows: {cause.course.value}",
        f"    pattern: {_quoted(pattern_of(cause.quotes[0].text))}",
        f"    words: {_quoted(cause.quotes[0].text[:_LONGEST_PATTERN])}",
        "    todo: ''",
    )
    return "\n".join([text.rstrip("\n"), *rows]) + "\n"


def pattern_of(line: str) -> str:
    """The line as an expression in which numbers and addresses may be others."""
    parts = re.split(r"(0x[0-9a-fA-F]+|\d+)", line.partition(" / ")[0].strip())
    spelled = [
        r"\w+" if at % 2 else re.escape(part).replace("\\ ", " ") for at, part in enumerate(parts)
    ]
    while spelled and sum(map(len, spelled)) > _LONGEST_PATTERN:
        spelled.pop()
    return "".join(spelled)


def _quoted(text: str) -> str:
    """As YAML's single quotes take it, in one line."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split(" "))
    return "'" + line.replace("'", "''") + "'"
