"""What happened to a cell, event by event, over all queues: the history that `explain` shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.view import RunView
from boxcar.laptop.triage import advice
from boxcar.shared.cell import cell_line
from boxcar.shared.disk import digest
from boxcar.shared.event_words import heard
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.receipt import LAPTOP
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, chained, mark

_FIELDS = ("attempt", "box", "cfg", "percent", "queue", "task", "url", "wait_s")


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
    found = [moment for (type_, _), row in rows for moment in _moments(type_, list(row))]
    return tuple(sorted(found + _ends(view, events), key=lambda moment: moment.at))


def _ends(view: RunView, events: Sequence[Event]) -> list[Moment]:
    """How the agents of its queue ended since it began, as a scheduler says."""
    began_at = {event.data.get("queue"): event.at for event in reversed(events)}
    return [
        Moment(end.at, queue.name, end.sentence)
        for queue in view.queues
        for end in queue.ends
        if queue.name in began_at and end.at >= began_at[queue.name]
    ]


def _moments(type_: str, row: list[Event]) -> Iterable[Moment]:
    if type_ != "cell.progress" or len(row) < 3:
        return [
            Moment(event.at, event.data.get("queue", "?"), tell_history(event)) for event in row
        ]
    first, last = row[0], row[-1]
    words = {"first": tell_history(first), "last": tell_history(last), "at": last.at, "n": len(row)}
    return [
        Moment(
            first.at,
            first.data.get("queue", "?"),
            _("{first} … {last}, at {at} ({n} reports)", **words),
        )
    ]


_TOLD = {
    "cell.claimed": mark("claimed by {queue} on {box}"),
    "cell.started": mark("attempt {attempt} started: {cfg} {task}, {on}"),
    "cell.progress": mark("attempt {attempt}: {numbers}"),
    "cell.retried": mark(
        "attempt {attempt} failed after {time} ({failure}: {reason}); retry in {wait_s} s"
    ),
    "cell.preempted": mark(
        "attempt {attempt} ended after {time}: {why}; the next launch resumes it"
    ),
    "cell.failed": mark("attempt {attempt} failed after {time} ({failure}: {reason}); {action}"),
    "cell.succeeded": mark("attempt {attempt} ended after {time} with all artifacts"),
    "cell.synced": mark("published: {published}, {size}, manifest {manifest}"),
    "cell.copied": mark("copied to {url}, {size}, manifest {manifest}"),
    "cell.verified": mark("{proven}{metrics}"),
    "cell.skipped": mark("{text}"),
    "box.warning": mark("warning: {text}"),
    "box.idle": mark(
        "attempt {attempt}: all GPUs idled for {time}; the busiest was at {percent} %"
    ),
}
_NOUNS = {
    "epochs": mark("{n} {n:epoch|epochs}"),
    "ranks": mark("{n} {n:rank|ranks}"),
    "files": mark("{n} {n:file|files}"),
}


def tell_history(event: Event) -> str:
    """The event as a sentence; `?` for what an event of another version does not say."""
    data = event.data
    failure = data.get("failure", "?")
    words = {name: data.get(name, "?") for name in _FIELDS}
    words |= {
        "failure": failure,
        "reason": advice.reason(failure, heard(data) or "?"),
        "text": heard(data) or "?",
        "why": heard(data) or _("it was asked to stop"),
        "time": units.duration(data["seconds"]) if "seconds" in data else "?",
        "size": units.size(data.get("size_bytes", 0)),
        "manifest": digest.short(data.get("manifest_sha256", "?")),
        "numbers": _numbers(data.get("progress", {}), data.get("best", {})),
        "metrics": _metrics(data),
        "proven": _proven(data),
        "action": advice_for_cell(
            data.get("is_final", False), data.get("is_kept", False), data.get("failure", "")
        ),
        "on": chained(mark("{first}, {second}"), [*_size(data), *_more(event)]),
        "published": count_moments("files", data.get("files")),
    }
    told = _TOLD.get(event.type)
    return Sentence(told, **words) if told else event.type


def advice_for_cell(is_final: bool, is_kept: bool, failure: str) -> Sentence:
    """What follows from a failure that an agent has given up."""
    if is_kept:
        return _("result kept; the next launch re-checks it without retraining")
    if is_final:
        return _("not retried with this release")
    return _(
        mark("unchanged, it would fail again")
        if advice.is_to_change(failure)
        else mark("not retried now; the next launch retries it")
    )


def count_moments(noun: str, number: object) -> str:
    """Such as `3 epochs`; with a `?` for what is not known."""
    return Sentence(_NOUNS[noun], n=number if isinstance(number, int) else "?")


def _size(data: dict[str, Any]) -> list[str]:
    return [count_moments("epochs", data.get("epochs")), count_moments("ranks", data.get("nproc"))]


def _numbers(numbers: dict[str, Any], best: dict[str, Any]) -> str:
    steps = [f"{name} {numbers[name]}" for name in ("step", "epoch") if name in numbers]
    return ", ".join([*steps, named_numbers(numbers, best=best)]).strip(", ")


def _metrics(data: dict[str, Any]) -> str:
    metrics = named_numbers(data.get("metrics", {}))
    notes = [
        _("; {name}: {why}", name=name, why=why)
        for name, why in data.get("metric_notes", {}).items()
    ]
    return (
        chained(mark("{first}{second}"), [_(": {text}", text=metrics), *notes]) if metrics else ""
    )


def _proven(data: dict[str, Any]) -> Sentence:
    if data.get("by") != LAPTOP:
        return _("every artifact was loaded and checked")
    at, files = data.get("accepted_at", "?"), data.get("unpickled") or []
    if data.get("is_lent"):
        return _("reused: its result is on the laptop, verified at {at}", at=at)
    if files:
        return _(
            "accepted: verified on the laptop at {at}; {files} unpickled",
            at=at,
            files=", ".join(map(str, files)),
        )
    return _("accepted: verified on the laptop at {at}", at=at)


def _more(event: Event) -> list[str]:
    """The words and variables that a line gave, where it gave some."""
    if event.type != "cell.started" or "cfg" not in event.data:
        return []
    words = cell_line.words_of_line(cell_line.begun_line(event))
    return [shlex.join(words)] if words else []
