"""All that the board shows of one look at a run, decided before a line is drawn. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from boxcar.laptop.common import units
from boxcar.laptop.project.from_environment import missing_for_boxes
from boxcar.laptop.project.job import Job
from boxcar.laptop.run import condition
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.view import BROKEN_OFF, QueueView, RunView
from boxcar.laptop.view.board import cell_rows, needs_you
from boxcar.laptop.view.board.box_rows import BoxRow, box_rows
from boxcar.laptop.view.board.cell_rows import CellRow, count_word
from boxcar.laptop.view.board.history import History
from boxcar.laptop.view.board.needs_you import Need, Quiet
from boxcar.laptop.view.board.terminal_lines import UNICODE, Glyphs, word
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

# What a run has cost and will cost, from the prices that a person typed. Pure.
#
# Counted is the time in which an agent was at work on a box. What the box costs before, between and
# after that is the platform's to say.


HOUR_S = 3600.0


@dataclass(frozen=True)
class Money:
    """Sums by currency; `to_go` is None where the time left is not known of every priced queue.
    `priced` of `queues` have a price.
    """

    so_far: dict[str, float]
    to_go: dict[str, float] | None
    priced: int
    queues: int


def money_of_run(
    prices: Mapping[str, str], view: RunView, left_s: Mapping[str, float | None]
) -> Money | None:
    """From the prices by box and the seconds left by queue; None where no box has a price."""
    priced = [queue for queue in view.queues if queue.box in prices]
    if not priced:
        return None
    known = {queue.name: seconds for queue in priced if (seconds := left_s[queue.name]) is not None}
    spent_s = {queue.name: at_work_s(queue, view.at) for queue in priced}
    return Money(
        so_far=_sums(prices, priced, spent_s),
        to_go=_sums(prices, priced, known) if len(known) == len(priced) else None,
        priced=len(priced),
        queues=len(view.queues),
    )


def at_work_s(queue: QueueView, now: str) -> float:
    """The seconds in which an agent of the queue was at work, from its first words to its last."""
    total_s, began, last = 0.0, "", ""
    for event in queue.events:
        if event.type == "agent.started":
            total_s += timestamp.seconds_between(began, last) if began else 0.0
            began = event.at
        last = event.at
    if not began:
        return total_s
    if may_run(queue):
        return total_s + timestamp.seconds_between(began, now, queue.clock_ahead_s)
    return total_s + timestamp.seconds_between(began, last)


def money_text(money: Money, language: str) -> str:
    """`14.20 CNY so far, 9.00 CNY to go`; of which boxes, where some have no price."""
    so_far = amounts(money.so_far)
    if money.to_go:
        text = word("so_far_to_go", language, so_far=so_far, to_go=amounts(money.to_go))
    else:
        text = word("so_far", language, so_far=so_far)
    if money.priced == money.queues:
        return text
    return word("priced", language, text=text, n=money.priced, all=money.queues)


def _sums(
    prices: Mapping[str, str], queues: Iterable[QueueView], seconds: Mapping[str, float]
) -> dict[str, float]:
    """By currency: what stands in two of them is not added up."""
    sums: dict[str, float] = {}
    for queue in queues:
        amount, currency = units.price_of_text(prices[queue.box])
        hours = seconds[queue.name] / HOUR_S
        sums[currency] = sums.get(currency, 0.0) + amount * hours
    return {currency: total for currency, total in sums.items() if total}


def amounts(sums: Mapping[str, float]) -> str:
    """`14.20 CNY + 1.00 USD`."""
    return " + ".join(f"{total:.2f} {currency}" for currency, total in sums.items()) or "0"


# What runs out next for a run, as far as its own files know. Pure.
#
# While agents are at work that is their last cell. After them it is how long boxes have cost money
# for nothing. What a platform does to a box that is off (a wipe, a release) counts from a moment
# that nobody tells us; `explain` and the board have it in words.


def nearest_clock(view: RunView, *, is_billed: bool) -> Sentence | None:
    """None where nothing is known."""
    idle_s = [_idle_s(queue, view.at) for queue in view.queues if not may_run(queue)]
    known = [seconds for seconds in idle_s if seconds is not None]
    if is_billed and known:
        return Sentence("runs.idle_for", time=units.about(max(known)))
    left_s = _left_s(view)
    return Sentence("runs.ends_in", time=units.about(left_s)) if left_s else None


def left_by_queue(view: RunView) -> dict[str, float | None]:
    """The seconds until each queue's last cell ends; None where one of them is unknown."""
    return condition.queues_left_s(view, condition.cells_left_s(view))


def _left_s(view: RunView) -> float | None:
    """Until the last of the queues that are at work ends."""
    left = left_by_queue(view)
    found = [left[queue.name] for queue in view.queues if may_run(queue)]
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if known and len(known) == len(found) else None


def _idle_s(queue: QueueView, now: str) -> float | None:
    """Since the last word of its agent."""
    if not queue.events:
        return None
    return timestamp.seconds_between(queue.events[-1].at, now, queue.clock_ahead_s)


# Whether the webhooks that a job asks for are sent by nobody. Pure.


_OVER = ("done", "drained", "stopped", "incomplete")


def webhooks_off(job: Job, view: RunView, environ: Mapping[str, str]) -> str | None:
    """The variable of a URL that is not set, '' where it was not set at launch, or None where
    webhooks are sent, or nobody asked for any, or nothing is left to tell.
    """
    needed = missing_for_boxes(job, environ)
    if not needed or all(queue.condition.word in _OVER for queue in view.queues):
        return None
    beats = [queue.heartbeat for queue in view.queues if queue.is_alive and queue.heartbeat]
    unset = [name for name in needed if name]
    if any(beat.extra.get("webhooks") for beat in beats):
        return None
    if beats:
        return unset[0] if unset else ""
    return unset[0] if len(unset) == len(needed) else None


# In the order in which they are counted at the top.
COUNTED = (
    *("verified", "running", BROKEN_OFF, "settling", "retrying", "failed", "damaged", "preempted"),
    *("unknown", "queued", "dropped"),
)


@dataclass(frozen=True)
class Facts:
    """What the board knows besides the view. `next` is the command to type, spelled, or '', and
    `because` why; `see_all` is the command that prints all rows. `prices` are by box.
    """

    profile: str
    next: str
    because: str
    see_all: str = ""
    metrics: tuple[str, ...] = ()
    prices: tuple[tuple[str, str], ...] = ()
    quiet: Quiet = Quiet()
    language: str = "en"
    glyphs: Glyphs = UNICODE


@dataclass(frozen=True)
class Snapshot:
    """`looked_s` is how long ago the look was. `left_s` is None where nobody can know."""

    run: str
    clock: str
    facts: Facts
    counts: tuple[tuple[str, int], ...]
    left_s: float | None
    money: str
    boxes: tuple[BoxRow, ...]
    needs: tuple[Need, ...]
    short_needs: tuple[Need, ...]  # with cells that failed alike in one row
    failed: tuple[CellRow, ...]
    under_way: tuple[CellRow, ...]
    done: Sequence[CellRow]
    queued: Sequence[CellRow]
    looked_s: float = 0.0

    @property
    def cells(self) -> int:
        return sum(number for _, number in self.counts)


def snapshot(view: RunView, history: History, facts: Facts) -> Snapshot:
    cell_left_s = condition.cells_left_s(view)
    queue_left_s = condition.queues_left_s(view, cell_left_s)
    needs = needs_you.needs(view, history, facts.quiet, facts.language)
    cost = money_of_run(dict(facts.prices), view, queue_left_s)
    return Snapshot(
        run=view.run,
        clock=_clock(view.at),
        facts=facts,
        counts=_counts(view),
        left_s=_longest(queue_left_s.values()),
        money=money_text(cost, facts.language) if cost else "",
        boxes=box_rows(view, history, cell_left_s),
        needs=needs,
        short_needs=needs_you.alike(needs_you.by_kind(needs), facts.language),
        failed=cell_rows.failed(view),
        under_way=cell_rows.under_way(view, facts.metrics),
        done=cell_rows.ended(view, facts.metrics),
        queued=cell_rows.to_come(view),
    )


def _counts(view: RunView) -> tuple[tuple[str, int], ...]:
    found = Counter[str]()
    for one, cells in view.by_word.items():
        found[count_word(one)] += len(cells)
    return tuple((word, found[word]) for word in COUNTED if found[word])


def _longest(left_s: Iterable[float | None]) -> float | None:
    """Until the last queue ends: they run beside each other."""
    known = list(left_s)
    if any(one is None for one in known):
        return None
    return max((one for one in known if one is not None), default=0.0)


def _clock(at: str) -> str:
    """The time of the look as the laptop's own clock shows it."""
    moment: datetime = timestamp.parse_utc(at)
    return moment.astimezone().strftime("%H:%M")
