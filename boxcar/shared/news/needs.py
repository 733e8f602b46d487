"""Which events need a person, and what they type about it: `needs` in an event's data. Pure.

Only where the run does not get on there by itself. What a person has to do comes first in the
event's own text; the command is where they see it, or what they type when it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.shared import ended_by
from boxcar.shared.triage.course import Course
from boxcar.shared.triage.told_cause import course_of

# Of a warning, by its `what`.
_OF_WARNING = {
    "accepted_damaged": "repair",
    "disk_full": "status",
    "news_refused": "notify --test",
    "queue_line": "plan",
    "release_not_taken": "status",
    "waits_for_release": "push",
    "webhooks_off": "repair --put-back",
}


def command(type: str, data: Mapping[str, Any]) -> str | None:
    """The words after `boxcar`; None for an event that needs nobody."""
    if type == "box.warning":
        return _OF_WARNING.get(data.get("what", ""))
    if type == "queue.stopped":
        return "status" if data.get("by") == ended_by.TROUBLE else None
    is_asked = type == "cell.failed" and course_of(data.get("class")) is Course.ASK
    if is_asked or type == "box.idle":
        return f"explain --cell {data['cell']}"
    return None
