"""One line for each cell: those under way with the curve of their loss, those that ended, those to
come.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.view import BROKEN_OFF, CellView, QueueView, RunView
from boxcar.laptop.view.board.box_rows import epoch_of
from boxcar.laptop.view.board.terminal_lines import (
    BUSY,
    DIM,
    Column,
    Glyphs,
    Line,
    Span,
    in_order,
    span,
    sparkline,
    state_glyph,
    table,
    word,
)
from boxcar.shared import state, timestamp
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass

UNDER_WAY = ("running", "claimed", "succeeded", "synced", "retrying", BROKEN_OFF)
ENDED = ("verified", "dropped")
FAILED = ("failed", "damaged")
_SETTLING = ("succeeded", "synced")
_METRICS_SHOWN = 4
_BARS = 12


@dataclass(frozen=True)
class CellRow:
    """`curve` are the reports of the number in `headline`, oldest first. `copied_percent`: how far
    the copy of its result was at the last heartbeat, which would take `copy_left_s` from then on.
    """

    cell: str
    box: str
    state: str
    headline: str
    curve: tuple[float, ...]
    numbers: str
    epoch: str
    seconds: float
    ended_at: str = ""
    is_accepted: bool = False
    why: str = ""
    copied_percent: int | None = None
    copy_left_s: float = 0.0


def under_way(view: RunView, named: Sequence[str]) -> tuple[CellRow, ...]:
    """The cells that an agent is at, and those between two attempts. `named`: the job's metrics."""
    events = {queue.name: queue for queue in view.queues}
    found = view.of_words(UNDER_WAY)
    return tuple(_row(cell, events.get(cell.queue), named) for cell in found)


def failed(view: RunView) -> tuple[CellRow, ...]:
    return tuple(_row(cell, None, ()) for cell in view.of_words(FAILED))


def ended(view: RunView, named: Sequence[str]) -> Sequence[CellRow]:
    """The newest first; what was dropped comes last."""
    cells = sorted(view.of_words(ENDED), key=_ended_at, reverse=True)
    return [_row(cell, None, named) for cell in cells]


def to_come(view: RunView) -> Sequence[CellRow]:
    words = view.by_word.keys() - {*UNDER_WAY, *ENDED, *FAILED}
    return [_row(cell, None, ()) for cell in view.of_words(words)]


def _ended_at(cell: CellView) -> str:
    now = cell.record.state if cell.record else None
    return now.at if isinstance(now, state.Verified) else ""


def count_word(word_: str) -> str:
    """The word by which a state is counted."""
    if word_ in _SETTLING:
        return "settling"
    return "running" if word_ == "claimed" else word_


def _row(cell: CellView, queue: QueueView | None, named: Sequence[str]) -> CellRow:
    now = cell.record.state if cell.record else None
    numbers = cell.metrics or cell.progress
    name = headline(numbers, named)
    first = {name: numbers[name]} if name else {}
    copied_percent, copy_left_s = _copied(queue, cell)
    rest = {key: value for key, value in numbers.items() if key != name}
    return CellRow(
        cell=cell.name,
        box=cell.box,
        state=cell.word,
        headline=named_numbers(first, best=cell.best),
        curve=_curve(queue, cell, name) if queue and name else (),
        numbers=named_numbers(_job_s_first(rest, named), _METRICS_SHOWN, cell.best),
        epoch=epoch_of(cell),
        seconds=cell.seconds,
        ended_at=_ended_at(cell),
        is_accepted=cell.accepted is not None,
        why=now.failure if isinstance(now, state.Waiting | state.Failed) else cell.marked,
        copied_percent=copied_percent,
        copy_left_s=copy_left_s,
    )


def _copied(queue: QueueView | None, cell: CellView) -> tuple[int | None, float]:
    beat = queue.heartbeat if queue and queue.is_alive is not False else None
    if beat is None or beat.copying is None or beat.copying.cell != cell.name:
        return None, 0.0
    copying = beat.copying
    if not isinstance(cell.record and cell.record.state, state.Succeeded) or not copying.done_bytes:
        return None, 0.0
    took_s = timestamp.seconds_between(copying.since, beat.at)
    left_s = took_s * (copying.total_bytes - copying.done_bytes) / copying.done_bytes
    return 100 * copying.done_bytes // copying.total_bytes, left_s


def headline(numbers: Mapping[str, Any], named: Sequence[str]) -> str | None:
    """Which number stands first: the loss, else the first that the job names."""
    losses = [name for name in numbers if "loss" in name.lower() and _is_number(numbers[name])]
    mine = [name for name in named if _is_number(numbers.get(name))]
    return next(iter((*losses, *mine)), None)


def _job_s_first(numbers: Mapping[str, Any], named: Sequence[str]) -> dict[str, Any]:
    return {name: numbers[name] for name in named if name in numbers} | dict(numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _curve(queue: QueueView, cell: CellView, name: str) -> tuple[float, ...]:
    """What the journal has of it, and the last heartbeat."""
    # From the newest on: where all before its first attempt is known, nobody reads it.
    own = (event for event in reversed(queue.events) if event.cell == cell.name)
    since = itertools.takewhile(lambda event: not _is_first(event), own)
    told = [e.data.get("progress", {}) for e in since if e.type == "cell.progress"][::-1]
    # The journal may have said already what the heartbeat says.
    told += [cell.progress] if told[-1:] != [cell.progress] else []
    return tuple(float(one[name]) for one in told if _is_number(one.get(name)))


def _is_first(event: Event) -> bool:
    return event.type == "cell.started" and event.data.get("attempt") == 1


def drawn(rows: Sequence[CellRow], room: int, language: str, glyphs: Glyphs) -> list[Line]:
    columns = (
        Column("", keep=9),
        Column("", keep=8, least=10, is_name=True),
        Column("", keep=7),
        Column("", keep=6, least=8),
        Column("", keep=4),
        Column("", keep=3, least=10),
        Column("", keep=2, is_right=True),
        Column("", keep=1, least=6, is_name=True),
    )
    return table(columns, [_fields(row, language, glyphs) for row in rows], room, glyphs.mark)


def _fields(row: CellRow, language: str, glyphs: Glyphs) -> tuple[Line, ...]:
    sign, look = state_glyph(row.state, glyphs)
    curve = sparkline(in_order(row.curve, _BARS), glyphs.levels)
    said = _state(row, language)
    return (
        (Span(sign, look),),
        (span(row.cell),),
        (span(said, look),) if said else (),
        (span(row.headline),) if row.headline else (),
        (Span(curve, BUSY),) if curve else (),
        (span(row.numbers),) if row.numbers else (),
        (Span(units.duration(row.seconds), DIM),) if row.seconds else (),
        (span(row.box, DIM),),
    )


def _state(row: CellRow, language: str) -> str:
    """What the title of its group does not say."""
    if row.is_accepted:
        return word("accepted", language)
    is_said = row.state in ("running", "verified", "queued") and not row.why
    return "" if is_said else state_words(row, language)


def state_words(row: CellRow, language: str) -> str:
    """The word of its state, with why it is so, or how far the copy of its result is."""
    if row.state == "verified" and row.why:
        return word("in_doubt", language, doubt=row.why)
    counted = word(count_word(row.state), language)
    if row.copied_percent is not None:
        left = units.about(row.copy_left_s)
        return word("copied", language, what=counted, percent=row.copied_percent, time=left)
    return f"{counted} {row.why}".strip()
