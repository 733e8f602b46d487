"""What is shown of one look at a run, made once: counts, boxes, cells, needs, money. Pure.

The tables of `status`, the board in the terminal, the live page and the JSON document only draw it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run import condition
from boxcar.laptop.run.condition import heartbeat_age_s, may_run
from boxcar.laptop.run.run_cost import Money, Rental, money_of_run, money_sentence
from boxcar.laptop.run.view import (
    ABANDONED,
    BROKEN_OFF,
    DROPPED,
    Blocked,
    CellView,
    QueueView,
    RunView,
    blocked_of_run,
)
from boxcar.laptop.view.gpu_history import (
    NOTHING_SEEN,
    SPAN_S,
    GpuSample,
    History,
    idle_s,
    is_number,
    memory_bytes,
)
from boxcar.laptop.view.looks import UNICODE, Bars, Glyphs
from boxcar.laptop.view.needs import (
    Need,
    Quiet,
    needs_of_run,
    needs_person,
    with_alike_in_one_row,
)
from boxcar.shared import state, timestamp
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, in_language

# What runs out next.


def nearest_clock(view: RunView, *, is_billed: bool) -> Sentence | None:
    """While agents are at work their last cell, after them how long boxes have cost money for
    nothing; None where nothing is known.
    """
    silent = [queue for queue in view.queues if queue.events and not may_run(queue)]
    if is_billed and silent:
        idle_s = (
            timestamp.seconds_between(queue.events[-1].at, view.at, queue.clock_ahead_s)
            for queue in silent
        )
        return _("idle for {time}", time=units.about(max(idle_s)))
    left = left_by_queue(view)
    found = [left[queue.name] for queue in view.queues if may_run(queue)]
    left_s = max((seconds or 0.0 for seconds in found), default=0.0)
    if None in found or not left_s:
        return None
    return _("ends in {time}", time=units.about(left_s))


def left_by_queue(view: RunView) -> dict[str, float | None]:
    """The seconds until each queue's last cell ends; None where one of them is unknown."""
    return condition.queues_left_s(view, condition.cells_left_s(view))


UNDER_WAY = ("running", "claimed", "succeeded", "synced", "retrying", BROKEN_OFF)
ENDED = ("verified", DROPPED, ABANDONED)
FAILED = ("failed", "damaged")
# Of a state the word by which it is counted, where that is another.
_COUNTED_AS = {"succeeded": "settling", "synced": "settling", "claimed": "running"}
# In the order in which they are counted at the top.
_COUNTED = (
    *("verified", "running", BROKEN_OFF, "settling", "retrying", "failed", "damaged", "preempted"),
    *("unknown", "queued", DROPPED, ABANDONED),
)
_NUMBERS_SHOWN = 4
_GIB = 1 << 30


@dataclass(frozen=True)
class Facts:
    """What is shown besides the view. `next` is the command to type, spelled, or '', and `because`
    why; `see_all` is the command that prints all rows. `prices` and `rentals` are by box.
    """

    profile: str
    next: str
    because: str
    see_all: str = ""
    metrics: tuple[str, ...] = ()
    prices: tuple[tuple[str, str], ...] = ()
    rentals: tuple[tuple[str, Rental], ...] = ()
    quiet: Quiet = Quiet()
    language: str = "en"
    glyphs: Glyphs = UNICODE

    def said(self, text: str) -> str:
        """A sentence in the reader's language; whatever else as it is."""
        return str(in_language(text, self.language))


@dataclass(frozen=True)
class BoxRow:
    """A queue and its box. `at` is when the look was, `work` the cell that it is at, which will
    take `work_left_s`; all its cells take `left_s`. `gpu` is what was seen of its GPUs, and the
    look was `looked_s` ago.
    """

    queue: QueueView
    at: str
    work: CellView | None
    gpu: tuple[GpuSample, ...]
    work_left_s: float | None
    left_s: float | None
    looked_s: float = 0.0

    @property
    def box(self) -> str:
        return self.queue.box

    @property
    def cell(self) -> str | None:
        return self.queue.active

    @property
    def beat(self) -> Heartbeat | None:
        """The last heartbeat, but for one of an agent that is gone."""
        return self.queue.heartbeat if self.queue.is_alive is not False else None

    @property
    def heartbeat_age_s(self) -> float | None:
        age_s = heartbeat_age_s(self.queue, self.at)
        return None if age_s is None else age_s + self.looked_s

    @property
    def step(self) -> object:
        return self.work.progress.get("step") if self.work else None

    @property
    def gpu_percent(self) -> float | None:
        return self.gpu[-1].percent if self.gpu and self.beat else None

    @property
    def half_hour(self) -> Bars:
        return _half_hour(self.at, [(one.at_s, one.percent) for one in self.gpu])

    @property
    def is_at_ease(self) -> bool:
        is_idle = self.beat is not None and idle_s(self.gpu) is not None
        return not (needs_person(self.queue.condition.word) or is_idle)

    @property
    def memory(self) -> str:
        """`71/80 G` of the fullest GPU; where there is none, `RAM 9.4/16 G` of the box's own."""
        gauges = self.beat.gauges if self.beat else {}
        if found := memory_bytes(gauges.get("gpus")):
            fullest, total = max(found)
            return f"{fullest / _GIB:.0f}/{total / _GIB:.0f} G"
        used, limit = gauges.get("memory_used_bytes"), gauges.get("memory_limit_bytes")
        if not is_number(used):
            return ""
        most = f"/{limit / _GIB:.0f}" if is_number(limit) else ""
        return f"RAM {used / _GIB:.1f}{most} G"


@dataclass(frozen=True)
class CellRow:
    """A cell. `queue` is at it, None where none is; `named` are the numbers that the job names. Of
    one that runs: `left_s`, what was seen of its GPUs until `at`, and its numbers with each look.
    """

    view: CellView
    named: Sequence[str] = ()
    queue: QueueView | None = None
    left_s: float | None = None
    at: str = ""
    gpu: Sequence[GpuSample] = ()
    seen: Sequence[Mapping[str, Any]] = ()

    @property
    def cell(self) -> str:
        return self.view.name

    @property
    def counted_as(self) -> str:
        return counted_as(self.view.word)

    @property
    def last_numbers(self) -> Mapping[str, Any]:
        return self._numbers

    @property
    def why(self) -> str:
        """Of what it failed, or what is doubtful of its result."""
        now = self.view.record.state if self.view.record else None
        return now.failure if isinstance(now, state.Waiting | state.Failed) else self.view.marked

    @cached_property
    def headline_name(self) -> str | None:
        """Of the number that stands first."""
        return headline(self._numbers, self.named)

    @property
    def _numbers(self) -> dict[str, Any]:
        return self.view.metrics or self.view.progress | self.view.guessed

    @property
    def headline(self) -> str:
        """The number that stands first."""
        name = self.headline_name
        return named_numbers({name: self._numbers[name]} if name else {}, best=self.view.best)

    @property
    def numbers(self) -> str:
        """The others, first those that the job names."""
        rest = {key: value for key, value in self._numbers.items() if key != self.headline_name}
        first = {name: rest[name] for name in self.named if name in rest}
        return named_numbers(first | rest, _NUMBERS_SHOWN, self.view.best)

    @cached_property
    def curve(self) -> tuple[float, ...]:
        """The reports of the number in `headline`."""
        return self.curve_of(self.headline_name)

    def curve_of(self, name: str | None) -> tuple[float, ...]:
        """The reports of a number, oldest first: what the journal has of it and the last heartbeat,
        or each look of this `watch` where these are more.
        """
        if self.queue is None or name is None:
            return ()
        # From the newest on: where all before its first attempt is known, nobody reads it.
        own = (event for event in reversed(self.queue.events) if event.cell == self.cell)
        since = itertools.takewhile(lambda event: not _is_first(event), own)
        told = [e.data.get("progress", {}) for e in since if e.type == "cell.progress"][::-1]
        # The journal may have said already what the heartbeat says.
        told += [self.view.progress] if told[-1:] != [self.view.progress] else []
        found = [
            [float(n) for one in of if is_number(n := one.get(name))] for of in (told, self.seen)
        ]
        longest = max(found, key=len)
        return (*longest,)

    @property
    def gpu_percent(self) -> Bars:
        """Of its attempt, over the last half hour."""
        return _half_hour(self.at, [(one.at_s, one.percent) for one in self.gpu])

    @property
    def memory_percent(self) -> Bars:
        known = [(one.at_s, one.memory_percent) for one in self.gpu]
        return _half_hour(self.at, [(at, value) for at, value in known if value is not None])

    @property
    def copied(self) -> tuple[int, float] | None:
        """How many percent of its result were copied at the last heartbeat, and how many seconds
        the rest would take from then on.
        """
        beat = self.queue.heartbeat if self.queue and self.queue.is_alive is not False else None
        copying, record = beat.copying if beat else None, self.view.record
        if beat is None or copying is None or copying.cell != self.cell or not copying.done_bytes:
            return None
        if record is None or not isinstance(record.state, state.Succeeded):
            return None
        took_s = timestamp.seconds_between(copying.since, beat.at)
        left_s = took_s * (copying.total_bytes - copying.done_bytes) / copying.done_bytes
        return 100 * copying.done_bytes // copying.total_bytes, left_s


def _half_hour(at: str, percents: Sequence[tuple[float, float]]) -> Bars:
    if not percents:
        return Bars()
    now_s = timestamp.parse_utc(at).timestamp()
    ago_s = [max(0.0, now_s - at_s) for at_s, _percent in percents]
    return Bars([percent for _at, percent in percents], ago_s, SPAN_S, 0.0, 100.0)


def counted_as(state_word: str) -> str:
    """The word by which a state is counted."""
    return _COUNTED_AS.get(state_word, state_word)


def headline(numbers: Mapping[str, Any], named: Sequence[str]) -> str | None:
    """Which number stands first: the loss, else the first that the job names."""
    losses = [name for name in numbers if "loss" in name.lower() and is_number(numbers[name])]
    mine = [name for name in named if is_number(numbers.get(name))]
    return next(iter((*losses, *mine)), None)


def _is_first(event: Event) -> bool:
    return event.type == "cell.started" and event.data.get("attempt") == 1


@dataclass(frozen=True)
class RunRows:
    """Each of its rows is made when it is first asked for."""

    view: RunView
    facts: Facts
    history: History = NOTHING_SEEN

    @property
    def run(self) -> str:
        return self.view.run

    @property
    def clock(self) -> str:
        """The time of the look as the laptop's own clock shows it."""
        return timestamp.parse_utc(self.view.at).astimezone().strftime("%H:%M")

    @cached_property
    def cells_left_s(self) -> dict[str, float | None]:
        return condition.cells_left_s(self.view)

    @cached_property
    def _queues_left_s(self) -> dict[str, float | None]:
        return condition.queues_left_s(self.view, self.cells_left_s)

    @cached_property
    def left_s(self) -> float | None:
        """Until the last queue ends, as they run beside each other; None where nobody can know."""
        known = [left_s for left_s in self._queues_left_s.values() if left_s is not None]
        return max(known, default=0.0) if len(known) == len(self.view.queues) else None

    @cached_property
    def money(self) -> str:
        cost = self.cost
        return self.facts.said(money_sentence(cost)) if cost else ""

    @cached_property
    def cost(self) -> Money | None:
        prices, rentals = dict(self.facts.prices), dict(self.facts.rentals)
        return money_of_run(prices, self.view, self._queues_left_s, rentals)

    @cached_property
    def counts(self) -> tuple[tuple[str, int], ...]:
        found = Counter[str]()
        for word, cells in self.view.by_word.items():
            found[counted_as(word)] += len(cells)
        return tuple((word, found[word]) for word in _COUNTED if found[word])

    @cached_property
    def boxes(self) -> tuple[BoxRow, ...]:
        """Of all queues, in the plan's order."""
        active = {queue.active for queue in self.view.queues}
        cells = {cell.name: cell for cell in self.view.cells if cell.name in active}
        return tuple(
            BoxRow(
                queue,
                self.view.at,
                cells.get(queue.active or ""),
                self.history.gpus.get(queue.name, ()),
                self.cells_left_s.get(queue.active or ""),
                self._queues_left_s[queue.name],
            )
            for queue in self.view.queues
        )

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        return needs_of_run(self.view, self.history, self.facts.quiet, self.facts.language)

    @cached_property
    def short_needs(self) -> tuple[Need, ...]:
        return with_alike_in_one_row(self.needs)

    @cached_property
    def blocked(self) -> dict[str, Blocked]:
        return blocked_of_run(self.view)

    @cached_property
    def failed(self) -> Sequence[CellRow]:
        return self._rows(self.view.of_words(FAILED))

    @cached_property
    def under_way(self) -> Sequence[CellRow]:
        """The cells that an agent is at, and those between two attempts."""
        queues = {queue.name: queue for queue in self.view.queues}
        cells = self.view.of_words(UNDER_WAY)
        return [self._at_work(cell, queues.get(cell.queue)) for cell in cells]

    def _at_work(self, cell: CellView, queue: QueueView | None) -> CellRow:
        now = cell.record.state if cell.record else None
        if not isinstance(now, state.Running):
            return CellRow(cell, self.facts.metrics, queue)
        attempt = (cell.name, now.attempt)
        gpu, seen = self.history.gpus_of.get(attempt, ()), self.history.seen.get(attempt, ())
        left_s = self.cells_left_s[cell.name]
        return CellRow(cell, self.facts.metrics, queue, left_s, self.view.at, gpu, seen)

    @cached_property
    def done(self) -> Sequence[CellRow]:
        """The newest first; what was dropped comes last."""
        return self._rows(sorted(self.view.of_words(ENDED), key=_ended_at, reverse=True))

    @cached_property
    def queued(self) -> Sequence[CellRow]:
        words = self.view.by_word.keys() - {*UNDER_WAY, *ENDED, *FAILED}
        return self._rows(self.view.of_words(words))

    @property
    def all_cells(self) -> list[CellRow]:
        """Each once, in the order in which they need somebody."""
        return [*self.failed, *self.under_way, *self.done, *self.queued]

    def _rows(self, cells: Sequence[CellView]) -> Sequence[CellRow]:
        return [CellRow(cell, self.facts.metrics) for cell in cells]


def _ended_at(cell: CellView) -> str:
    now = cell.record.state if cell.record else None
    return now.at if isinstance(now, state.Verified) else ""
