"""The message that a chat gets: what, where, how many are left, when done, the next command. Pure.

One screen of a phone, whatever happened: of many events the first few stand there, and the number
of the others.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxcar.shared import state
from boxcar.shared.cell import duration
from boxcar.shared.errors import Command, DamagedError
from boxcar.shared.event_words import heard
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news.wanted import NEEDS, is_told
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, in_language, mark
from boxcar.shared.text_width import beginning, short_name
from boxcar.shared.triage import course_words
from boxcar.shared.triage.evidence import course_of

_LISTED = 6
_REASON = 240
# In columns: a chat on a phone shows about 34 in a line, and a list is to be seen at once.
_SHORT_REASON = 40
_NAME = 40
# Of a word that is typed; no cell has a longer name.
_WORD = 300
# Of a text in an event that waits; no cell has a longer name.
_KEPT = 1_000
# What is counted of the events that are no news by themselves; all others are left out.
_COUNTED = {
    "cell.started": mark("{n} started"),
    "cell.verified": mark("{n} verified"),
    "cell.retried": mark("{n} retried"),
    "box.warning": mark("{n} {n:warning|warnings}"),
}
_PROGRAM = "boxcar"
# The `what` of a warning.
LATE_MIRROR = "mirror_late"
_OVER = (state.Verified, state.Failed)


@dataclass(frozen=True)
class Standing:
    """`left_s` is None where no cell was verified yet, so nobody knows how long one takes."""

    cells: int
    left: int
    left_s: float | None = None


class Tally:
    """Follows a journal event by event: of each it keeps what is known of its cell."""

    def __init__(self) -> None:
        self._replay = state.Replay()
        self._cells: int | None = None
        self._is_known = True

    def take(self, event: Event | None) -> None:
        """None is an event that cannot be read: then nobody knows what is left."""
        if event is None:
            self._is_known = False
            return
        if event.type == "queue.started":
            cells = event.data.get("cells")
            self._cells = cells if isinstance(cells, int) else None
        try:
            self._replay.take(event)
        except DamagedError:
            self._is_known = False

    def standing(self) -> Standing | None:
        """None where the events do not say how many cells there are."""
        if self._cells is None or not self._is_known:
            return None
        records = self._replay.state().cells.values()
        # Lines may be added while it runs: a cell that was begun counts, though the start knew
        # less.
        cells = max(self._cells, len(records))
        left = cells - sum(isinstance(record.state, _OVER) for record in records)
        took_s = [r.seconds for r in records if isinstance(r.state, state.Verified) and r.seconds]
        left_s = left * statistics.mean(took_s) if took_s else None
        return Standing(cells, left, left_s)


def standing(events: Iterable[Event]) -> Standing | None:
    """After these events of one queue."""
    tally = Tally()
    for event in events:
        tally.take(event)
    return tally.standing()


def brief(channel: str, event: Event) -> Event | None:
    """As much of it as a message needs, for whoever keeps many; None where none speaks of it."""
    if is_told(channel, event):
        return replace(event, data={name: _shortened(v) for name, v in event.data.items()})
    return replace(event, data={}) if event.type in _COUNTED else None


def _shortened(value: Any) -> Any:
    """No reason is told longer than that; a name may be typed, so it stays whole."""
    if isinstance(value, dict):
        return {name: _shortened(one) for name, one in value.items()}
    return value[:_KEPT] if isinstance(value, str) else value


def of_events(channel: str, events: Sequence[Event], left: Standing | None, language: str) -> str:
    """The message of all that waits, of which one at least is told by itself."""
    told = [event for event in events if is_told(channel, event)]
    folded = [event for event in events if not is_told(channel, event)]
    return text(told, folded, left, language)


def text(
    told: Sequence[Event],
    folded: Iterable[Event],
    left: Standing | None,
    language: str,
) -> str:
    """The message of these news, in their order; `folded` are the events that are only counted."""
    lines: list[Sentence | str] = [_title(told)]
    lines += _listed(told, language) if len(told) > 1 else _detail(told[0], language)
    lines += [_where(told[-1]), *_left(left), *_since(folded)]
    lines.append(_("next: {command}", command=_command(told).typed(_PROGRAM)))
    return "\n".join(_said(line, language) for line in lines if line)


def _said(line: Sentence | str, language: str) -> str:
    return line.said(language) if isinstance(line, Sentence) else line


def _title(told: Sequence[Event]) -> Sentence:
    run = _of(told[0], "run")
    if len(told) > 1:
        return _("Boxcar {run}: {n} events", run=run, n=len(told))
    return _("Boxcar {run}: {what}", run=run, what=_what(told[0]))


def _what(event: Event) -> Sentence:
    """What happened, in a few words."""
    data = event.data
    if event.type == "cell.failed":
        return _("{cell} failed ({failure})", cell=_of(event, "cell"), failure=_failure(event))
    if event.type == "queue.done" and data.get("failed"):
        counts = {"verified": data.get("verified", 0), "failed": data["failed"]}
        return _(
            "{queue} done: {verified} {verified:cell|cells} verified, {failed} failed",
            queue=_of(event, "queue"),
            **counts,
        )
    if event.type == "queue.done":
        return _(
            "{queue} done: {verified} {verified:cell|cells} verified",
            queue=_of(event, "queue"),
            verified=data.get("verified", 0),
        )
    if event.type == "queue.stopped":
        name = (
            mark("{queue} stopped and needs attention")
            if data.get(NEEDS)
            else mark("{queue} stopped")
        )
        return Sentence(name, queue=_of(event, "queue"))
    if event.type == "box.idle":
        return _idle(event)
    if event.type == "box.warning":
        name = mark("{box} needs attention") if data.get(NEEDS) else mark("warning from {box}")
        return Sentence(name, box=_of(event, "box"))
    return _("{box} needs attention ({type})", type=event.type, box=_of(event, "box"))


def _idle(event: Event) -> Sentence:
    seconds = event.data.get("seconds")
    time = duration.spell_duration(_rounded(seconds if isinstance(seconds, (int, float)) else 0))
    about = {"percent": _of(event, "percent"), "cell": _of(event, "cell"), "time": time}
    return _(
        "GPU of {box} at {percent} % for {time} while {cell} runs",
        box=_of(event, "box"),
        **about,
    )


def _failure(event: Event) -> Sentence | str:
    """Its id, with the class in two words where the agent said it."""
    id, course = _of(event, "failure"), course_of(event.data.get("class"))
    if course is None:
        return id
    return _("{name}, {id}", name=Sentence(course_words.NAMES[course]), id=id)


def _detail(event: Event, language: str) -> list[Sentence | str]:
    return [
        _("Slow data loading, or waiting for something? See the log and the curves.")
        if event.type == "box.idle"
        else _reason(event, _REASON, language)
    ]


def _listed(told: Sequence[Event], language: str) -> list[Sentence]:
    if len(told) <= _LISTED:
        return [_item(event, language) for event in told]
    # The last one stays: it is what the queue came to.
    head, more = told[: _LISTED - 1], len(told) - _LISTED
    items = [_item(event, language) for event in (*head, told[-1])]
    return [*items[:-1], _("- and {n} more", n=more), items[-1]]


def _item(event: Event, language: str) -> Sentence:
    if reason := _reason(event, _SHORT_REASON, language):
        return _("- {what}: {why}", what=_what(event), why=reason)
    return _("- {what}", what=_what(event))


def _reason(event: Event, longest: int, language: str) -> str:
    if event.type == "box.idle":
        return ""  # its first line says it, in the reader's language
    found = in_language(heard(event.data) or "", language)
    return beginning(_one_line(found), longest)


def _of(event: Event, name: str) -> str:
    value = event.data.get(name)
    return short_name(_one_line("-" if value in (None, "") else value), _NAME)


def _one_line(value: Any) -> str:
    """So that no name and no log looks like a line of ours."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())


def _where(event: Event) -> Sentence:
    at = event.at[5:16].replace("T", " ")  # the chat itself says the year
    return _("{queue} on {box}, {at} UTC", queue=_of(event, "queue"), box=_of(event, "box"), at=at)


def _left(standing: Standing | None) -> list[Sentence]:
    if standing is None:
        return []
    counts = {"left": standing.left, "cells": standing.cells}
    if standing.left and standing.left_s is not None:
        time = duration.spell_duration(_rounded(standing.left_s))
        return [_("left: {left} of {cells} {cells:cell|cells}, about {time}", **counts, time=time)]
    return [_("left: {left} of {cells} {cells:cell|cells}", **counts)]


def _rounded(left_s: float) -> int:
    """To minutes; of days nobody wants to know the minute."""
    unit_s = 3600 if left_s >= 86_400 else 60
    return max(unit_s, round(left_s / unit_s) * unit_s)


def _since(folded: Iterable[Event]) -> list[Sentence]:
    counts = Counter(_COUNTED[event.type] for event in folded if event.type in _COUNTED)
    parts: Sentence | None = None
    for name in dict.fromkeys(_COUNTED.values()):
        if counts[name]:
            one = Sentence(name, n=counts[name])
            parts = one if parts is None else _("{first}, {second}", first=parts, second=one)
    return [_("since the last message: {counts}", counts=parts)] if parts else []


def _command(told: Sequence[Event]) -> Command:
    event = told[-1]
    if needs := event.data.get(NEEDS):
        verb, *words = str(needs).split()
        return Command(_one_line(verb), tuple(_one_line(word)[:_WORD] for word in words))
    if len(told) == 1 and event.type == "cell.failed" and event.cell:
        return Command("explain", ("--cell", event.cell))
    if event.type == "queue.done":
        return Command("pull")
    return Command("status")


def late_mirror(data: Mapping[str, Any]) -> Sentence:
    """`seconds` is what the box had; `mirrored_at` when the copy was made that is there."""
    name = (
        mark(
            "{cell}: the latest checkpoint did not reach the durable tier in the {seconds} s the "
            "box had left; the copy there is from {at} UTC"
        )
        if data.get("mirrored_at")
        else mark(
            "{cell}: no checkpoint reached the durable tier in the {seconds} s the box had left; "
            "if the box is lost, the cell starts over"
        )
    )
    at = str(data.get("mirrored_at"))[:19].replace("T", " ")
    seconds = f"{float(data.get('seconds') or 0):g}"
    return Sentence(name, cell=str(data.get("cell")), seconds=seconds, at=at)


def trial(run: str, place: Sentence, at: str, language: str) -> str:
    """The message of `notify --test`. Its first line has the word that filters of robots look for.
    `place` is who sends it, `at` when, as in files.
    """
    lines = (
        _("Boxcar {run}: a test message", run=run),
        _("sent from {place}, {at} UTC", place=place, at=at[:16].replace("T", " ")),
        _("If you can read this, notifications of this run arrive here."),
    )
    return "\n".join(line.said(language) for line in lines)
