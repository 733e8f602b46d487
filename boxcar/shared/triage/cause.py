"""Why an attempt ended, and by which lines that is known."""

from __future__ import annotations

from boxcar.shared.record import dataclass
from boxcar.shared.triage.course import Course


@dataclass(frozen=True)
class Quote:
    """A line of evidence; `line` is its place in the log, 0 for what is not of the log."""

    line: int
    text: str


@dataclass(frozen=True)
class Cause:
    """`id` is the signature's, in docs/failures.md; '' where nothing is known of it. `reason` is a
    clause in English, for journals. `retry_after_s` is what a server asked for.
    """

    id: str
    course: Course
    reason: str
    quotes: tuple[Quote, ...] = ()
    waits_s: tuple[float, ...] = ()
    is_known: bool = True
