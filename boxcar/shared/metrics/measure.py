"""The numbers that a job names of what a cell left: taken in a child, by box and laptop alike.

A person's expression may need longer than the sun shines, so each number gets a second of CPU. What
cannot be had is no number, with a note why; nothing here fails a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import event_words, paths
from boxcar.shared.errors import reason_of
from boxcar.shared.files.plan import LOG, Metric
from boxcar.shared.files.receipt import Number
from boxcar.shared.process import bounded_child
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MODULE = "boxcar.shared.metrics"
LATE = _("took longer than 1 s of CPU, so it was not taken")


@dataclass(frozen=True)
class Left:
    """What a cell left: `folder` has the files, `log` is the log, the last attempt's part of it
    from `log_begins_at_bytes` on. `is_growing`: the cell runs, and a number at the very end may be
    half of one.
    """

    folder: Path
    log: Path
    log_begins_at_bytes: int = 0
    is_growing: bool = False


def take_numbers(metrics: Sequence[Metric], cells: Sequence[Left]) -> list[tuple[Number, ...]]:
    """The numbers of each cell, in the order of `metrics`. Raises nothing."""
    tasks = [task_of(metric, left) for left in cells for metric in metrics]
    return [
        tuple(_number(metric, answer) for metric, answer in zip(metrics, part, strict=True))
        for part in _parts(answers(tasks), len(cells), len(metrics))
    ]


def take_with_place(metrics: Sequence[Metric], left: Left) -> list[tuple[Number, str]]:
    """Those of one cell, each with the line or the row that it is from. Raises nothing."""
    found = answers([task_of(metric, left) for metric in metrics])
    return [
        (_number(metric, answer), str(answer.get("where", "")))
        for metric, answer in zip(metrics, found, strict=True)
    ]


def _parts(found: list[dict[str, Any]], count: int, size: int) -> Iterator[list[dict[str, Any]]]:
    return (found[at * size : (at + 1) * size] for at in range(count))


def task_of(metric: Metric, left: Left) -> dict[str, Any]:
    """What the child is asked."""
    places = {"folder": str(left.folder.absolute()), "log": str(left.log.absolute())}
    about = {name: getattr(metric, name) for name in ("name", "source", "of", "key", "best")}
    begins_at, is_growing = left.log_begins_at_bytes, left.is_growing
    told = {"log_begins_at_bytes": begins_at, "is_growing": is_growing, "metric": about}
    return {**places, **told}


def _number(metric: Metric, answer: dict[str, Any]) -> Number:
    value = answer.get("value")
    if is_of_ours(metric):
        return Number(
            metric.name, None, _("{name} {why}: rename it", name=metric.of, why=paths.OWN_NAME)
        )
    if isinstance(value, (int, float)):
        return Number(metric.name, float(value))
    note = answer.get("note", _("the child gave no answer"))
    return Number(metric.name, None, event_words.hear_in(note, answer.get(event_words.SENTENCES)))


def is_of_ours(metric: Metric) -> bool:
    """Whether it names a file of the agent's."""
    return metric.source != LOG and metric.of.split("/")[0].casefold() in paths.AGENTS_OWN


def answers(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The child's. One for each task; a new child goes on behind a task that ended one."""
    found: list[dict[str, Any]] = []
    while len(found) < len(tasks):
        said, is_at, why = _ask_child(tasks[len(found) :])
        found += said
        if len(found) < len(tasks) and is_at:
            found.append({"note": why})
        elif not said:
            found += [{"note": why}] * (len(tasks) - len(found))
    return found


def _ask_child(tasks: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool, str]:
    """What it answered, whether it was at a further task when it ended, and how it ended."""
    try:
        rc, lines = bounded_child.ask(MODULE, {"tasks": tasks})
    except OSError as error:
        return [], False, _("could not be read here: {why}", why=reason_of(error))
    found = [line for line in lines if not line.keys().isdisjoint(("value", "series", "note"))]
    is_at = sum("at" in line for line in lines) > len(found)
    is_late = bounded_child.was_late(rc)
    return found, is_at, LATE if is_late else _("ended its reader with code {code}", code=rc)


def of_named(numbers: Sequence[Number]) -> dict[str, float | None]:
    """By name, for tables and events."""
    return {number.name: number.value for number in numbers}


def notes(numbers: Sequence[Number]) -> dict[str, str]:
    """Why some are none, by name."""
    return {number.name: number.note for number in numbers if number.value is None}
