"""What is known of an ended attempt, in one record."""

from __future__ import annotations

import enum
from typing import Any

from boxcar.shared.record import dataclass

# What follows from a failure: its class. Nothing here ever changes batch, epochs, seeds, config.
#
# The values stand in journals, in `--json` and in people's failures.yaml.


class Course(enum.Enum):
    RESUME_SAME = "RESUME_SAME"
    WAIT_NETWORK = "WAIT_NETWORK"
    OTHER_BOX = "OTHER_BOX"
    FREE_SPACE = "FREE_SPACE"
    FIX_CONFIG = "FIX_CONFIG"
    FIX_CODE = "FIX_CODE"
    FIX_DATA = "FIX_DATA"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PREEMPTED = "PREEMPTED"
    TIME_LIMIT = "TIME_LIMIT"
    STOP_QUEUE = "STOP_QUEUE"
    ASK = "ASK"


# As it is, the cell would fail in the same way.
CHANGE_FIRST = frozenset(
    {Course.FIX_CONFIG, Course.FIX_CODE, Course.FIX_DATA, Course.OUT_OF_MEMORY}
)
# Two alike in a row say something of what the cells share. A network that is away, a config or a
# model that is too large say nothing of the cells that come after.
OF_BOX_OR_CODE = frozenset(
    {Course.RESUME_SAME, Course.OTHER_BOX, Course.FIX_CODE, Course.STOP_QUEUE}
)


# Why an attempt ended, and by which lines that is known.


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


# What an event of a failure says of its cause, of a journal that anybody may have written.


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


@dataclass(frozen=True)
class Evidence:
    """`log` is the attempt's part of the log, or its end; its first line has the number
    `log_begins_at_line`. `rcs` are the codes of the launcher and of its workers, empty where nobody
    knows them; negative is a signal's number. `error_file` is torchrun's, of the first rank that
    failed; `gpu_problems` what the driver says of its GPUs. `own` is what a person's signature
    found in the log.
    """

    log: str = ""
    log_begins_at_line: int = 1
    rcs: frozenset[int] = frozenset()
    oom_kills: int = 0
    gpu_problems: tuple[str, ...] = ()
    error_file: str = ""
    own: Cause | None = None
