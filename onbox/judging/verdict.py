"""What follows from how an attempt ended."""

from __future__ import annotations

import enum
from typing import Any

from boxcar.shared.record import dataclass
from boxcar.shared.triage.evidence import Course, Quote


class Action(enum.Enum):
    SUCCEED = "succeed"
    PREEMPTED = "preempted"
    RETRY = "retry"
    AWAIT_ROOM = "await room"
    FAIL = "fail"
    STOP_QUEUE = "stop queue"


@dataclass(frozen=True)
class Verdict:
    """`waits_s`: how long to wait before each further attempt; none is left when it is used up.

    A preempted cell is resumed after the same waits, unless the agent itself was told to stop. Who
    waits for room uses up nothing.
    `is_final`: not tried again by a later launch of the same release either. `is_kept`: nor is it
    trained again; a later launch looks whether its result was put right. `aside` are checkpoints
    that the next attempt is to do without. `course` is the failure's class, None for a success;
    `quotes` are the lines of the log by which it is known. `doubt` marks a success in every table.
    """

    action: Action
    failure: str = ""
    reason: str = ""
    waits_s: tuple[float, ...] = ()
    is_final: bool = False
    is_kept: bool = False
    aside: tuple[str, ...] = ()
    course: Course | None = None
    quotes: tuple[Quote, ...] = ()
    doubt: str = ""

    @property
    def evidence(self) -> dict[str, Any]:
        """The failure's class and the lines by which it is known, for the journal."""
        quotes = [{"line": one.line, "text": one.text} for one in self.quotes]
        return {"class": self.course.value if self.course else None, "evidence": quotes or None}
