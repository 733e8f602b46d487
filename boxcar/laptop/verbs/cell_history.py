"""What happened to a cell, event by event, over all queues: the history that `explain` shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.view import RunView
from boxcar.laptop.triage import advice
from boxcar.shared.catalogue.sentence import Sentence, chained
from boxcar.shared.cell import begun, line_spelling
from boxcar.shared.disk import digest
from boxcar.shared.files.accepted import LAPTOP
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass

_FIELDS = ("attempt", "box", "cfg", "queue", "task", "text", "url", "wait_s")


@dataclass(frozen=True)
class Moment:
    """Something that happened to a cell, in a sentence. A row of reports is one moment."""

    at: str
    queue: str
    what: str


def history_of_cell(view: RunView, cell: str) -> tuple[Moment, ...]:
    """Every event of the cell in the order of time, over all queues."""
    events = [event for queue in view.queues for event in queue.events if event.cell == cell]
    events.sort(key=lambda event: event.at)
    rows = groupby(events, key=lambda event: (event.type, event.data.get("attempt")))
    return tuple(moment for (type_, _), row in rows for moment in _moments(type_, list(row)))


def _moments(type_: str, row: list[Event]) -> Iterable[Moment]:
    if type_ != "cell.progress" or len(row) < 3:
        return [
            Moment(event.at, event.data.get("queue", "?"), tell_history(event)) for event in row
        ]
    first, last = row[0], row[-1]
    words = {"first": tell_history(first), "last": tell_history(last), "at": last.at, "n": len(row)}
    return [Moment(first.at, first.data.get("queue", "?"), Sentence("story.row", **words))]


def tell_history(event: Event) -> str:
    """The event as a sentence; `?` for what an event of another version does not say."""
    data = event.data
    failure = data.get("failure", "?")
    words = {name: data.get(name, "?") for name in _FIELDS}
    words |= {
        "failure": failure,
        "reason": advice.reason(failure, str(data.get("reason", "?"))),
        "why": data.get("reason", "it was asked to leave"),
        "time": units.duration(data["seconds"]) if "seconds" in data else "?",
        "size": units.size(data.get("size_bytes", 0)),
        "manifest": digest.short(data.get("manifest_sha256", "?")),
        "numbers": _numbers(data.get("progress", {}), data.get("best", {})),
        "metrics": _metrics(data),
        "proven": _proven(data),
        "action": advice_for_cell(
            data.get("is_final", False), data.get("is_kept", False), data.get("failure", "")
        ),
        "on": chained("good_run.and", [*_size(data), *_more(event)]),
        "published": count_moments("files", data.get("files")),
    }
    try:
        return Sentence(f"story.{event.type}", **words)
    except KeyError:
        return event.type


def advice_for_cell(is_final: bool, is_kept: bool, failure: str) -> Sentence:
    """What follows from a failure that an agent has given up."""
    if is_kept:
        return Sentence("story.is_kept")
    if is_final:
        return Sentence("story.is_final")
    return Sentence("story.to_change" if advice.is_to_change(failure) else "story.given_up")


def count_moments(noun: str, number: object) -> str:
    """Such as `3 epochs`; with a `?` for what is not known."""
    return Sentence(f"story.n_{noun}", n=number if isinstance(number, int) else "?")


def _size(data: dict[str, Any]) -> list[str]:
    return [count_moments("epochs", data.get("epochs")), count_moments("ranks", data.get("nproc"))]


def _numbers(numbers: dict[str, Any], best: dict[str, Any]) -> str:
    steps = [f"{name} {numbers[name]}" for name in ("step", "epoch") if name in numbers]
    return ", ".join([*steps, named_numbers(numbers, best=best)]).strip(", ")


def _metrics(data: dict[str, Any]) -> str:
    metrics = named_numbers(data.get("metrics", {}))
    notes = [
        Sentence("story.metric_note", name=name, why=why)
        for name, why in data.get("metric_notes", {}).items()
    ]
    return (
        chained("story.beside", [Sentence("story.metrics", text=metrics), *notes])
        if metrics
        else ""
    )


def _proven(data: dict[str, Any]) -> Sentence:
    if data.get("by") != LAPTOP:
        return Sentence("story.proven")
    at, files = data.get("accepted_at", "?"), data.get("unpickled") or []
    if data.get("is_lent"):
        return Sentence("story.lent", at=at)
    if files:
        return Sentence("story.accepted_unpickled", at=at, files=", ".join(map(str, files)))
    return Sentence("story.accepted", at=at)


def _more(event: Event) -> list[str]:
    """The words and variables that a line gave, where it gave some."""
    if event.type != "cell.started" or "cfg" not in event.data:
        return []
    words = line_spelling.words_of_line(begun.begun_line(event))
    return [shlex.join(words)] if words else []
