"""What an event of a failure says of its cause, of a journal that anybody may have written."""

from __future__ import annotations

from typing import Any

from boxcar.shared.triage.cause import Quote
from boxcar.shared.triage.course import Course

_MOST_QUOTES = 10


def course_of(value: Any) -> Course | None:
    """None where an older agent did not say it, or a newer one says another."""
    return Course(value) if value in {course.value for course in Course} else None


def quotes_of(value: Any) -> tuple[Quote, ...]:
    rows = value if isinstance(value, (list, tuple)) else ()
    found = [_quote(row) for row in rows[:_MOST_QUOTES]]
    return tuple(quote for quote in found if quote)


def _quote(row: Any) -> Quote | None:
    line, text = (row.get("line"), row.get("text")) if isinstance(row, dict) else (None, None)
    if isinstance(line, int) and isinstance(text, str):
        return Quote(line, text)
    return None
