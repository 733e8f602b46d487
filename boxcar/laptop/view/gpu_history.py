"""What this `watch` has seen of each box's GPUs and of its cell's numbers: a heartbeat is replaced
every few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeGuard

from boxcar.laptop.run.view import QueueView, RunView, guessed_numbers
from boxcar.shared import timestamp
from boxcar.shared.news.wanted import IDLE_FOR_S, IDLE_PERCENT
from boxcar.shared.record import dataclass

# A cell's name, and which of its attempts.
Attempt = tuple[str, int]

SPAN_S = 30 * 60.0
# Of one attempt; of more each second one is dropped.
_MOST_SEEN = 400
# Two could be a pause on each side of a laptop's sleep.
IDLE_SAMPLES = 3
_MINUTE_S = 60


@dataclass(frozen=True)
class GpuSample:
    """One minute of a box, or of an attempt's own GPUs, by the laptop's clock: the mean of its
    GPUs, the busiest of them and the fullest.
    """

    at_s: float
    percent: float
    busiest_percent: float
    is_at_work: bool
    memory_percent: float | None = None


@dataclass(frozen=True)
class History:
    """By queue and by attempt that runs, oldest first, at most one a minute; and of each attempt
    the numbers of each look, with those that its log seemed to say.
    """

    gpus: dict[str, tuple[GpuSample, ...]]
    gpus_of: dict[Attempt, tuple[GpuSample, ...]] = field(default_factory=dict)
    seen: dict[Attempt, tuple[dict[str, Any], ...]] = field(default_factory=dict)


NOTHING_SEEN = History({})


def history_after_look(history: History, view: RunView) -> History:
    """With what this look found."""
    now_s = _epoch_s(view.at)
    gpus, of = {}, {}
    for queue in view.queues:
        gpus[queue.name] = _after(history.gpus.get(queue.name, ()), _sample(queue), now_s)
        for one in queue.heartbeat.at_work if queue.heartbeat else ():
            attempt = one.cell, one.attempt
            new = _sample(queue, one.gpus)
            of[attempt] = _after(history.gpus_of.get(attempt, ()), new, now_s)
    return History(gpus, of, _seen_after_look(history, view))


def _seen_after_look(history: History, view: RunView) -> dict[Attempt, tuple[dict[str, Any], ...]]:
    found = {}
    for queue in view.queues:
        for beat in queue.heartbeat.at_work if queue.heartbeat else ():
            attempt = beat.cell, beat.attempt
            told = history.seen.get(attempt, ())
            new = beat.progress | guessed_numbers(beat.progress, beat.seen)
            told = told if told[-1:] == (new,) else (*told, new)
            found[attempt] = (*told[:-1:2], told[-1]) if len(told) > _MOST_SEEN else told
    return found


def idle_s(samples: Sequence[GpuSample]) -> float | None:
    """For how long every GPU was idle while a cell ran, up to the newest sample; None where that is
    not long enough, or too little was seen.
    """
    idle: list[GpuSample] = []
    for sample in reversed(samples):
        if not sample.is_at_work or sample.busiest_percent >= IDLE_PERCENT:
            break
        idle.append(sample)
    span_s = idle[0].at_s - idle[-1].at_s if idle else 0.0
    return span_s if span_s >= IDLE_FOR_S and len(idle) >= IDLE_SAMPLES else None


def _after(
    samples: Sequence[GpuSample], new: GpuSample | None, now_s: float
) -> tuple[GpuSample, ...]:
    """With the new one, of each minute the newest."""
    kept = [one for one in samples if now_s - one.at_s <= SPAN_S]
    # A box whose clock runs ahead unseen must not hide what it says later.
    if new is None or new.at_s > now_s + _MINUTE_S:
        return tuple(kept)
    if kept and new.at_s <= kept[-1].at_s:
        return tuple(kept)
    if kept and kept[-1].at_s // _MINUTE_S == new.at_s // _MINUTE_S:
        kept = kept[:-1]
    return (*kept, new)


def _sample(queue: QueueView, own: Sequence[str] = ()) -> GpuSample | None:
    """Of its `own` GPUs, where an attempt has some; else of all."""
    beat = queue.heartbeat
    if beat is None or queue.is_alive is False:
        return None
    cards = _cards(beat.gauges.get("gpus"), own)
    percents = (card.get("utilization_percent") for card in cards)
    found = [float(one) for one in percents if is_number(one)]
    if not found:
        return None
    at_s = _epoch_s(beat.at) - queue.clock_ahead_s
    percent = sum(found) / len(found)
    fullest = max((100 * used / total for used, total in memory_bytes(cards)), default=None)
    return GpuSample(at_s, percent, max(found), beat.phase == "running", fullest)


def _cards(rows: Any, own: Sequence[str]) -> list[dict[str, Any]]:
    cards = [row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)]
    numbered = enumerate(cards)
    return [card for at, card in numbered if not own or {str(at), card.get("uuid")} & {*own}]


def memory_bytes(cards: Any) -> list[tuple[float, float]]:
    """Used and total, of the GPUs of a heartbeat that say both."""
    names = ("memory_used_bytes", "memory_total_bytes")
    rows = [card for card in (cards if isinstance(cards, list) else ()) if isinstance(card, dict)]
    pairs = [(card.get(names[0]), card.get(names[1])) for card in rows]
    return [(a, b) for a, b in pairs if is_number(a) and is_number(b) and b > 0]


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _epoch_s(at: str) -> float:
    return timestamp.parse_utc(at).timestamp()
