"""What a box had left over the last hours, of the lines that its agent wrote. Pure.

A box wrote them: what is no number is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

from boxcar.laptop.common import units
from boxcar.shared import timestamp
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A day of lines, and more than that of bytes.
MOST_LINES, MOST_BYTES = 1440, 1 << 20


@dataclass(frozen=True)
class Gauge:
    """One number of a box: its `values` in their order, and the least, most and last as words."""

    name: str
    values: tuple[float, ...]
    least: str
    most: str
    last: str


def read_lines(data: bytes) -> list[dict[str, Any]]:
    """The last day, oldest first; a line that is none is left out."""
    found = []
    for line in data[-MOST_BYTES:].split(b"\n")[-MOST_LINES - 1 :]:
        try:
            one = json.loads(line)
            timestamp.parse_utc(one["at"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        found.append(one)
    return found


def gauges_of(lines: Sequence[Mapping[str, Any]]) -> list[Gauge]:
    """Those that the lines tell of; none of fewer than two lines."""
    cards = max((len(_cards(line)) for line in lines), default=0)
    found = [
        *(gauge for index in range(cards) for gauge in _of_card(lines, index)),
        _gauge(_("memory"), map(_memory_bytes, lines), units.size),
        _gauge(_("/dev/shm free"), _each(lines, "shm_free_bytes"), units.size),
        _gauge(_("scratch free"), _each(lines, "scratch_free_bytes"), units.size),
        _gauge(_("scratch inodes free"), _each(lines, "scratch_free_inodes"), _count),
        _gauge(_("durable free"), _each(lines, "durable_free_bytes"), units.size),
        _gauge(_("durable inodes free"), _each(lines, "durable_free_inodes"), _count),
        _gauge(_("steps a second"), _steps_per_s(lines), "{:.3g}".format),
    ]
    return [one for one in found if one]


def _of_card(lines: Sequence[Mapping[str, Any]], index: int) -> Iterator[Gauge | None]:
    cards = [_cards(line)[index] for line in lines if len(_cards(line)) > index]
    yield _gauge(_("GPU {n} use", n=index), _each(cards, "utilization_percent"), "{:.0f} %".format)
    yield _gauge(_("GPU {n} memory", n=index), _each(cards, "memory_used_bytes"), units.size)
    yield _gauge(_("GPU {n} heat", n=index), _each(cards, "temperature_c"), "{:.0f} °C".format)
    yield _gauge(_("GPU {n} power", n=index), _each(cards, "power_w"), "{:.0f} W".format)


def _gauge(name: str, values: Iterator[float | None], said: Any) -> Gauge | None:
    known = tuple(value for value in values if value is not None)
    if len(known) < 2:
        return None
    return Gauge(name, known, *map(said, (min(known), max(known), known[-1])))


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _cards(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    cards = line.get("gpus")
    if not isinstance(cards, list):
        return []
    return [card if isinstance(card, dict) else {} for card in cards]


def _each(lines: Sequence[Mapping[str, Any]], name: str) -> Iterator[float | None]:
    return (_number(line.get(name)) for line in lines)


def _memory_bytes(line: Mapping[str, Any]) -> float | None:
    """Without what is only a cache of files."""
    used = _number(line.get("memory_used_bytes"))
    cache = _number(line.get("memory_cache_bytes")) or 0.0
    return None if used is None else max(0.0, used - cache)


def _steps_per_s(lines: Sequence[Mapping[str, Any]]) -> Iterator[float | None]:
    """Of all cells that ran at both ends of a minute; a step that began anew counts for none."""
    for before, after in pairwise(lines):
        then, now = before.get("steps"), after.get("steps")
        seconds = timestamp.seconds_between(before["at"], after["at"])
        if not isinstance(then, dict) or not isinstance(now, dict) or seconds <= 0:
            continue
        made = [
            b - a
            for cell in then.keys() & now.keys()
            if (a := _number(then[cell])) is not None and (b := _number(now[cell])) is not None
        ]
        yield sum(one for one in made if one > 0) / seconds if made else None


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None  # type: ignore[arg-type]
