"""One line for each box: its GPUs over the last half hour, its memory, and what it works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from boxcar.laptop.common import units
from boxcar.laptop.run.condition import heartbeat_age_s
from boxcar.laptop.run.view import CellView, QueueView, RunView
from boxcar.laptop.view.board.history import SPAN_S, GpuSample, History, gpu_of, idle_s
from boxcar.laptop.view.board.terminal_lines import (
    BAD,
    BUSY,
    DIM,
    WARN,
    Column,
    Glyphs,
    Line,
    Span,
    condition_word,
    over_time,
    span,
    sparkline,
    table,
    word,
)
from boxcar.shared import timestamp
from boxcar.shared.news.wanted import IDLE_PERCENT
from boxcar.shared.record import dataclass

# A person is not needed for these.
AT_EASE = ("not started", "running", "idle", "pending", "done", "drained")
_UNSURE = ("unknown", "unreachable", "no room", "stalled agent", "step frozen", "incomplete")
_GIB = 1 << 30
# Of a line: how many bars the last half hour gets.
_LEAST_BARS, _MOST_BARS = 10, 30


@dataclass(frozen=True)
class BoxRow:
    """A queue and its box. `gpu` are the samples that were seen, in seconds before the look."""

    queue: str
    box: str
    condition: str
    cell: str | None
    gpu: tuple[tuple[float, float], ...]
    gpu_percent: float | None
    is_idle: bool
    memory: str
    epoch: str
    left_s: float | None
    heartbeat_age_s: float | None

    @property
    def is_at_ease(self) -> bool:
        return self.condition in AT_EASE and not self.is_idle


def box_rows(
    view: RunView, history: History, left_s: Mapping[str, float | None]
) -> tuple[BoxRow, ...]:
    """Of all queues, in the plan's order. `left_s` is that of the cell at work, by its name."""
    cells = {cell.name: cell for cell in view.cells}
    return tuple(
        _row(view, queue, cells, gpu_of(history, queue.name), left_s) for queue in view.queues
    )


def _row(
    view: RunView,
    queue: QueueView,
    cells: Mapping[str, CellView],
    samples: Sequence[GpuSample],
    left_s: Mapping[str, float | None],
) -> BoxRow:
    at_s = timestamp.parse_utc(view.at).timestamp()
    beat = queue.heartbeat if queue.is_alive is not False else None
    cell = cells.get(queue.active or "")
    return BoxRow(
        queue=queue.name,
        box=queue.box,
        condition=queue.condition.word,
        cell=queue.active,
        gpu=tuple((max(0.0, at_s - one.at_s), one.percent) for one in samples),
        gpu_percent=samples[-1].percent if samples and beat else None,
        is_idle=bool(beat) and idle_s(tuple(samples)) is not None,
        memory=_memory(beat.gauges) if beat else "",
        epoch=epoch_of(cell) if cell and beat else "",
        left_s=left_s.get(cell.name) if cell and beat else None,
        heartbeat_age_s=heartbeat_age_s(queue, view.at) if beat else None,
    )


def epoch_of(cell: CellView) -> str:
    """`3/20`, or nothing where the script reports no epoch."""
    done = cell.progress.get("epoch")
    if not isinstance(done, (int, float)):
        return ""
    return f"{done:g}/{cell.epochs}" if cell.epochs else f"{done:g}"


def _memory(gauges: Mapping[str, Any]) -> str:
    """`71/80 G` of the fullest GPU; where there is none, of the box's own memory."""
    cards = gauges.get("gpus")
    found = [
        (card["memory_used_bytes"], card["memory_total_bytes"])
        for card in (cards if isinstance(cards, list) else ())
        if isinstance(card, dict)
        and all(_is_number(card.get(name)) for name in ("memory_used_bytes", "memory_total_bytes"))
    ]
    if found:
        used, total = max(found)
        return f"{used / _GIB:.0f}/{total / _GIB:.0f} G"
    used, limit = gauges.get("memory_used_bytes"), gauges.get("memory_limit_bytes")
    if not _is_number(used):
        return ""
    return f"{used / _GIB:.1f}" + (f"/{limit / _GIB:.0f} G" if _is_number(limit) else " G")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def drawn(
    rows: Sequence[BoxRow], room: int, language: str, glyphs: Glyphs, looked_s: float
) -> list[Line]:
    """The rows below their titles."""
    bars = max(_LEAST_BARS, min(_MOST_BARS, _LEAST_BARS + (room - 80) // 4))
    columns = (
        Column(word("box", language), keep=9, least=6, is_name=True),
        Column(word("half_hour", language), keep=3),
        Column(word("gpu", language), keep=6, is_right=True),
        Column(word("memory", language), keep=4, is_right=True),
        Column(word("cell", language), keep=8, least=10, is_name=True),
        Column(word("epoch", language), keep=7, is_right=True),
        Column(word("left_title", language), keep=5, is_right=True),
        Column(word("heartbeat", language), keep=2, is_right=True),
    )
    lines = [_fields(row, bars, language, glyphs, looked_s) for row in rows]
    return table(columns, lines, room, glyphs.mark, has_head=True)


def _fields(
    row: BoxRow, bars: int, language: str, glyphs: Glyphs, looked_s: float
) -> tuple[Line, ...]:
    seen = sparkline(over_time(row.gpu, SPAN_S, bars), glyphs.levels, 0.0, 100.0)
    return (
        (span(row.box),),
        (Span(seen, BUSY),) if seen else (),
        _percent(row, glyphs),
        (Span(row.memory),) if row.memory else (),
        _at(row, language, glyphs),
        (Span(row.epoch),) if row.epoch else (),
        (Span(units.about(row.left_s)),) if row.left_s else (),
        _heartbeat(row, looked_s),
    )


def _percent(row: BoxRow, glyphs: Glyphs) -> Line:
    if row.gpu_percent is None:
        return ()
    is_low = row.gpu_percent < IDLE_PERCENT and row.cell is not None
    text = f"{row.gpu_percent:.0f} %"
    return (Span(f"{text}{glyphs.trouble}", WARN),) if is_low else (Span(f"{text} "),)


def _at(row: BoxRow, language: str, glyphs: Glyphs) -> Line:
    """The cell; of a box that is not simply at work how it is instead."""
    if row.condition == "running" and row.cell:
        return (span(row.cell),)
    told = condition_word(row.condition, language)
    if row.condition in AT_EASE:
        return (Span(told, DIM),)
    look = WARN if row.condition in _UNSURE else BAD
    sign = glyphs.trouble if look == WARN else glyphs.failed
    return (Span(f"{sign} {told}", look),)


def _heartbeat(row: BoxRow, looked_s: float) -> Line:
    if row.heartbeat_age_s is None:
        return ()
    return (Span(units.about(row.heartbeat_age_s + looked_s)),)
