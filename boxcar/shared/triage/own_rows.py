"""A person's own signatures, of the project's failures.yaml: they come first.

Each is looked for in a child with a second of CPU, as no expression may keep an agent from its
heartbeat. What cannot be had in that time does not match.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.files.plan import OwnSignature
from boxcar.shared.process import bounded_child
from boxcar.shared.triage.evidence import Cause, Course, Quote

MODULE = "boxcar.shared.triage.own_child"
# Of the end of a log; the child reads it line by line.
MOST_CHARACTERS = 256 * 1024


def match(rows: Sequence[OwnSignature], log: str, begins_at_line: int = 1) -> Cause | None:
    """The first of them that stands in a line of the log, with the last such line."""
    if not rows:
        return None
    cut = max(0, len(log) - MOST_CHARACTERS)
    first = begins_at_line + log[:cut].count("\n") if begins_at_line else 0
    found = _ask([row.pattern for row in rows], log[cut:])
    for row, answer in zip(rows, found, strict=False):
        line, text = answer.get("line"), answer.get("text")
        if isinstance(line, int) and isinstance(text, str):
            return _cause(row, Quote(first + line if first else 0, text))
    return None


def _ask(patterns: Sequence[str], log: str) -> list[dict[str, object]]:
    """An answer for each; a new child goes on behind one that ended its child."""
    answers: list[dict[str, object]] = []
    while len(answers) < len(patterns):
        try:
            _, lines = bounded_child.ask(
                MODULE, {"patterns": list(patterns[len(answers) :]), "log": log}
            )
        except OSError:
            return answers
        answers += [line for line in lines if "line" in line or "none" in line]
        if len(answers) < len(patterns):
            answers.append({"none": True})
    return answers


def _cause(row: OwnSignature, quote: Quote) -> Cause:
    course = Course(row.course)
    return Cause(row.id, course, f"{row.words}: {quote.text}", (quote,), row.waits_s)
