"""The rows of a run as tables, notes and one JSON document, as `status` prints them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.text_layout import TableView
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.condition import may_run, next_try, sets_up
from boxcar.laptop.run.news import warnings
from boxcar.laptop.run.state_words import condition_sentence, state_sentence
from boxcar.laptop.run.view import ABANDONED, CellView
from boxcar.laptop.triage import advice
from boxcar.laptop.view.run_rows import BoxRow, RunRows
from boxcar.shared import state
from boxcar.shared.disk import digest
from boxcar.shared.event_words import heard
from boxcar.shared.files import codec, control
from boxcar.shared.sentence import Sentence, _, chained, mark
from boxcar.shared.triage.evidence import course_of

_METRICS_SHOWN = 3
_WHY_SHOWN = 60  # characters
# Of these there is nothing to be noted. Which box does not answer, and why, stands among the run's
# problems already.
_NOTHING_TO_NOTE = ("not started", "running", "idle", "done", "unreachable")


def tables_of_run(rows: RunRows) -> list[TableView]:
    """The queues, their boxes, the cells, and the last warnings where there are any."""
    beats = [row for row in rows.boxes if row.beat]
    warned = [
        (event.at, queue, event.data.get("what"), event.cell, heard(event.data))
        for queue, event in warnings(rows.view)
    ]
    found = [
        _queue_table(rows),
        _without_empty(_("{run}: boxes", run=rows.run), _box_columns(beats)),
        _without_empty(_("{run}: cells", run=rows.run), _cell_columns(rows)),
        TableView("warnings", ("at", "queue", "what", "cell", "text"), tuple(warned)),
    ]
    return [table for at, table in enumerate(found) if table.rows or at in (0, 2)]


def _queue_table(rows: RunRows) -> TableView:
    columns = ("queue", "box", "condition", "cell", "step", "left", "heartbeat", "release")
    found = [
        (
            row.queue.name,
            row.box,
            condition_sentence(row.queue.condition.word),
            row.cell,
            row.step,
            _duration(row.left_s),
            None if (age_s := row.heartbeat_age_s) is None else units.duration(age_s),
            digest.short(row.queue.session.release) if row.queue.session else None,
        )
        for row in rows.boxes
    ]
    return TableView(_("{run}: queues", run=rows.run), columns, tuple(found))


def _cell_columns(rows: RunRows) -> dict[str, list[Any]]:
    """A column at a time: a run has a hundred thousand cells, and most columns are soon said."""
    cells, at_work = rows.view.cells, [row.queue for row in rows.boxes if may_run(row.queue)]
    ahead_s = {queue.name: queue.clock_ahead_s for queue in at_work}
    return {
        "cell": [cell.name for cell in cells],
        "queue": [cell.queue for cell in cells],
        "state": [*map(state_sentence, [cell.word for cell in cells])],
        "attempts": [cell.record.attempts if cell.record else None for cell in cells],
        "step": [cell.progress.get("step") for cell in cells],
        "epoch": [cell.progress.get("epoch", cell.epochs_done) for cell in cells],
        "metric": [
            named_numbers(cell.metrics or cell.progress | cell.guessed, _METRICS_SHOWN, cell.best)
            for cell in cells
        ],
        "speed": [cell.speed for cell in cells],
        "time": [_duration(cell.seconds) for cell in cells],
        "left": [_duration(rows.cells_left_s[cell.name]) for cell in cells],
        "bytes only": [", ".join(cell.bytes_only) for cell in cells],
        "trusted": [", ".join(cell.trusted) for cell in cells],
        "why": [_why(rows, cell, ahead_s.get(cell.queue)) for cell in cells],
    }


def _why(rows: RunRows, cell: CellView, clock_ahead_s: float | None) -> str | None:
    """What keeps a cell, in short; `explain` has all of it. `clock_ahead_s`: of its queue, see
    QueueView; None where no agent is at work there.
    """
    now = cell.record.state if cell.record else None
    if cell.word == ABANDONED:
        return cell.given_up
    if isinstance(now, state.Failed | state.Waiting):
        said: list[str] = []
        if clock_ahead_s is not None and (waits := next_try(cell.name, cell.record, clock_ahead_s)):
            said = [waits]
        said += [advice.reason(now.failure, now.reason)] if isinstance(now, state.Failed) else []
        why = chained(mark("{first}: {second}"), [now.failure, *said])
        text = " ".join(rows.facts.said(why).split())
        return text if len(text) <= _WHY_SHOWN else f"{text[: _WHY_SHOWN - 1]}…"
    if cell.marked:
        return _("not certain: {doubt}", doubt=cell.marked)
    kept = rows.blocked.get(cell.name)
    return _("blocked: {by} {why}", by=kept.by, why=kept.why) if kept else None


def _box_columns(beats: Sequence[BoxRow]) -> dict[str, list[Any]]:
    """What each box had left at its last heartbeat; none where no agent has written one."""
    gauges = [row.beat.gauges for row in beats if row.beat]
    cards = [one.get("gpus") or [] for one in gauges]
    return {
        "box": [row.box for row in beats],
        # With a gap between two GPUs.
        "GPUs": ["  ".join(f"{c.get('utilization_percent', '?')} %" for c in of) for of in cards],
        "GPU memory": [
            "  ".join(_part_of(c, "memory_used_bytes", "memory_total_bytes") for c in of)
            for of in cards
        ],
        "memory": [_part_of(one, "memory_used_bytes", "memory_limit_bytes") for one in gauges],
        "scratch free": [_free(one, "scratch") for one in gauges],
        "durable tier free": [_free(one, "durable") for one in gauges],
    }


def _without_empty(title: str, columns: Mapping[str, Sequence[Any]]) -> TableView:
    """A column in which nobody has anything to say takes the room of one that does."""
    said = {name: values for name, values in columns.items() if any(values)}
    return TableView(title, (*said,), tuple(zip(*said.values(), strict=True)))


def _part_of(gauges: Mapping[str, Any], part: str, whole: str) -> str:
    part_bytes, whole_bytes = gauges.get(part), gauges.get(whole)
    if part_bytes is None:
        return "-"
    if whole_bytes is None:
        return units.size(part_bytes)
    return _("{part} of {whole}", part=units.size(part_bytes), whole=units.size(whole_bytes))


def _free(gauges: Mapping[str, Any], place: str) -> str:
    inodes = gauges.get(f"{place}_free_inodes")
    free = _part_of(gauges, f"{place}_free_bytes", "")
    if inodes is None:
        return free
    return _("{size}, {inodes} inodes", size=free, inodes=units.count(inodes))


def _duration(seconds: float | None) -> str | None:
    return units.duration(seconds) if seconds else None


def notes_of_run(rows: RunRows) -> list[str]:
    """What a table has no room for: the queues that are not at ease, and what could not be read."""
    found = list(rows.view.problems)
    found += [_under(cell.name, cell.sentence) for cell in rows.view.cells if cell.accepted]
    for queue in rows.view.queues:
        now = queue.condition
        is_asked = queue.is_alive and queue.wanted != control.RUN
        if now.word not in _NOTHING_TO_NOTE or is_asked:
            how = _under(condition_sentence(now.word), now.sentence)
            found.append(_under(queue.name, how))
        elif text := sets_up(queue):
            found.append(_under(queue.name, text))
        # A living agent may be in the middle of writing its line.
        if queue.is_torn and not queue.is_alive:
            found.append(
                _(
                    "{queue}: a crash cut off the last line of its event log; it does not count",
                    queue=queue.name,
                )
            )
        found += [_("{head}: {text}", head=queue.name, text=problem) for problem in queue.problems]
        found += queue.undelivered
    return found


def _under(head: str, text: str) -> Sentence:
    return _("{head}: {text}", head=head, text=text)


def document_of_run(
    rows: RunRows, next_step: Any, rotate: Any, open_meters: Any = ()
) -> dict[str, Any]:
    """What `--json` prints: run, at, queues, cells, problems, warnings, next, rotate, open_meters.

    A queue has queue, box, condition, sentence, is_alive (null: not known), cell, step,
    heartbeat_age_s, heartbeat, release, wanted, problems and undelivered (news). A cell has cell,
    queue, box, task, epochs, index, state, attempts, seconds, left_s (null: not known), progress
    (the last numbers), best (until now, of what is not verified), metrics, class (of a failure,
    else null) and detail, which is its state's own data (such as failure and reason); and accepted,
    where `verify` proved what its box could not, seen, what the log of one that runs seems to say
    (a guess), doubt, which marks a result, and abandoned, why a
    person gave it up. `next` has
    command (null: nothing to do) and because.
    """
    return {
        "run": rows.run,
        "at": rows.view.at,
        "queues": [_queue_document(row) for row in rows.boxes],
        "cells": [_cell_document(cell, rows.cells_left_s[cell.name]) for cell in rows.view.cells],
        "problems": list(rows.view.problems),
        "warnings": [{"at": event.at, **event.data} for _, event in warnings(rows.view)],
        "next": next_step,
        "rotate": rotate,
        "open_meters": open_meters,
    }


def _queue_document(row: BoxRow) -> dict[str, Any]:
    queue = row.queue
    return {
        "queue": queue.name,
        "box": queue.box,
        "condition": queue.condition.word,
        "sentence": queue.condition.sentence,
        "is_alive": queue.is_alive,
        "cell": queue.active,
        "step": row.step,
        "heartbeat_age_s": row.heartbeat_age_s,
        "heartbeat": codec.encode(queue.heartbeat),
        "release": queue.session.release if queue.session else None,
        "wanted": queue.wanted,
        "problems": list(queue.problems),
        "undelivered": list(queue.undelivered),
    }


def _cell_document(cell: CellView, left_s: float | None) -> dict[str, Any]:
    copied = ("queue", "box", "task", "epochs", "index")
    return {
        "cell": cell.name,
        **{name: getattr(cell, name) for name in copied},
        "state": cell.word_of_journal,
        "attempts": cell.record.attempts if cell.record else None,
        "seconds": cell.seconds,
        "left_s": left_s,
        "progress": cell.progress,
        "best": cell.best,
        "metrics": cell.metrics,
        "class": _class_of_failure(cell),
        "detail": codec.encode(cell.record.state) if cell.record else {},
        **({"accepted": codec.encode(cell.accepted)} if cell.accepted else {}),
        **({"seen": codec.encode(cell.seen)} if cell.seen else {}),
        **({"doubt": cell.marked} if cell.marked else {}),
        **({"abandoned": cell.given_up} if cell.word == ABANDONED else {}),
    }


def _class_of_failure(cell: CellView) -> str | None:
    """Of its last attempt; None where it did not fail, or where nobody knows."""
    now = cell.record.state if cell.record else None
    if not isinstance(now, state.Failed | state.Waiting):
        return None
    course = advice.advice_of(now.failure, course_of(now.course)).course
    return course.value if course else None
