"""What is new in a run: against another look at it, or against what was said last.

`watch --once-if-changed` keeps what it said, so that cron writes a mail only for news.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.state_words import condition_sentence, state_sentence
from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.event_words import heard
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news.wanted import NAN, STALLED
from boxcar.shared.sentence import Sentence, _

WARNINGS_SHOWN = 5
# What an agent says of a line that got a `#`; journals keep the text.
_COMMENTED_OUT = _("was commented out")
# An agent that has gone on has read the file as it is: its cell is dropped, or had run.
_NO_AGENT_SINCE = ("queue.done", "queue.stopped", "agent.started")
_GONE_ON = ("cell.claimed", "queue.done", "queue.stopped")


def changes(before: RunView | None, after: RunView) -> list[str]:
    """What is different now: a line for each queue, cell, warning and problem that is."""
    seen = set(standings(before)) if before else set()
    return [line for standing, line in standings(after).items() if standing not in seen]


def standings(view: RunView) -> dict[tuple[object, ...], str]:
    """A line for everything that stands now, by what makes it worth saying again."""
    found: dict[tuple[object, ...], str] = {}
    for queue in view.queues:
        now = queue.condition
        how = _under(condition_sentence(now.word), now.sentence)
        found[queue.name, now.word, queue.wanted] = _under(queue.name, how)
        found |= {(queue.name, what): _under(queue.name, what) for what in queue.problems}
        for end in queue.ends[-1:]:
            found[queue.name, end.at, end.what] = _under(queue.name, end.sentence)
    found |= {(what,): what for what in view.problems}
    for cell in view.cells:
        attempts = cell.record.attempts if cell.record else None
        if attempts != 0:
            found[cell.name, cell.word, attempts] = _of_cell(cell, attempts)
    for queue_name, event in warnings(view):
        text = _("warning: {text}", text=heard(event.data) or "")
        found[event.id,] = _under(queue_name, text)
    return found


def _of_cell(cell: CellView, attempts: int | None) -> Sentence:
    state = cell.sentence if cell.accepted else state_sentence(cell.word)
    if attempts is None:
        return _("{cell}: {state}, attempt unknown", cell=cell.name, state=state)
    return _("{cell}: {state}, attempt {attempt}", cell=cell.name, state=state, attempt=attempts)


def _under(head: str, text: str) -> Sentence:
    return _("{head}: {text}", head=head, text=text)


def warnings(view: RunView) -> list[tuple[str, Event]]:
    """The last warnings of all queues with their queue, oldest first; none that is over."""
    found = [
        (queue.name, event)
        for queue in view.queues
        if queue.state
        for event in queue.state.warnings
        if not _is_over(event, queue.events)
    ]
    return sorted(found, key=lambda pair: pair[1].at)[-WARNINGS_SHOWN:]


def _is_over(warning: Event, events: Sequence[Event]) -> bool:
    """Of a line that waited, once its cell was begun or given up, for another cell also once that
    is said anew or the agent has ended; of a line that was commented out, once the agent has gone
    on without it. Any other warning stands.
    """
    what = warning.data.get("what")
    if warning.data.get("is_over"):
        return True
    later = list(itertools.takewhile(lambda event: event.seq > warning.seq, reversed(events)))
    if what == "waits_for_cell" and any(_is_said_anew(warning, event) for event in later):
        return True
    # Of the box itself: until its agent says that it is over, or is there no more to say it.
    if "is_over" in warning.data and any(
        (event.data.get("is_over") and _is_said_anew(warning, event))
        or event.type in _NO_AGENT_SINCE
        for event in later
    ):
        return True
    if what in ("waits_for_release", "waits_for_cell", STALLED, NAN):
        return any(event.cell == warning.cell and event.type != "box.warning" for event in later)
    is_comment = what == "queue_edited" and _COMMENTED_OUT in str(warning.data.get("text"))
    return is_comment and any(event.type in _GONE_ON for event in later)


def _is_said_anew(warning: Event, event: Event) -> bool:
    is_same = event.cell == warning.cell and event.data.get("what") == warning.data.get("what")
    return is_same or event.type in _NO_AGENT_SINCE


def news(
    project: Project, standings: Mapping[tuple[object, ...], str], now: str, at_most_every_s: float
) -> list[str]:
    """The lines of what stands now and did not stand at the last report; [] where it is too soon.

    What is returned counts as reported. A memory that cannot be read makes everything news.
    """
    path = Home(project.root).reported(project.plan.run)
    told, at = _read(path)
    # A clock that was set back must not keep us silent until it is there again.
    if at is not None and at <= now and timestamp.seconds_between(at, now) < at_most_every_s:
        return []
    keys = {json.dumps(key): line for key, line in standings.items()}
    lines = [line for key, line in keys.items() if key not in told]
    if set(keys) != told:  # also what is over: when it comes back, it is news
        atomic.make_folder(path.parent)
        record = {"at": now if lines else at, "told": sorted(keys)}
        atomic.write_whole(path, json.dumps(record).encode())
    return lines


def _read(path: Path) -> tuple[set[str], str | None]:
    try:
        record = json.loads(path.read_bytes())
        timestamp.parse_utc(record["at"])
        return set(record["told"]), record["at"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return set(), None
