"""What a run has cost and will cost, from the prices of its boxes. Pure.

Counted is the time in which an agent was at work on a box: what its cells used by their share of
the box's GPUs, attempts that failed, and the rest, which is idle. Apart from that stands the time
without an agent from a box's first agent, or from its rental, until somebody saw it end: it bills
unless the box was off, which nobody here can tell. Each currency is a sum of its own.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from boxcar.laptop.common import units
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView
from boxcar.shared import state, timestamp
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import Sentence, _

HOUR_S = 3600.0
# Fewer finished cells than this say little of the next ones.
FEWEST_SAMPLES = 3
_UNSURE = (0.5, 2.0)
# What an attempt ended with.
_WELL = ("cell.succeeded", "cell.preempted")
_ENDS = (*_WELL, "cell.failed", "cell.retried")


@dataclass(frozen=True)
class Rental:
    """When a box began to bill, where it is known better than by its first agent, and when somebody
    saw it end. `off_rate` is the price of an hour from then on, of a box that was only stopped,
    until `gone_at`. `before`: what stood under its alias earlier, oldest first, each at a price of
    its own.
    """

    begun_at: str | None = None
    ended_at: str | None = None
    off_rate: str = ""
    gone_at: str | None = None
    before: tuple[Replaced, ...] = ()


@dataclass(frozen=True)
class Replaced:
    """A box whose place another took; `until` is when that one was asked for."""

    id: str
    price: str
    until: str
    rental: Rental


@dataclass(frozen=True)
class Attempt:
    """`is_lost`: it failed, or broke off; `share` is that of the box's GPUs."""

    cell: str
    seconds: float
    share: float
    is_lost: bool

    @property
    def box_s(self) -> float:
        """The seconds of the whole box."""
        return self.seconds * self.share


@dataclass(frozen=True)
class BoxCost:
    """Seconds of one box at `price` an hour. `cells_s` and `lost_s` are of the whole box, by the
    GPUs of each attempt; `unseen_s`: without an agent, so it may have billed.
    """

    box: str
    price: str
    at_work_s: float
    cells_s: float
    lost_s: float
    unseen_s: float
    off_s: float = 0.0
    off_rate: str = ""

    @property
    def idle_s(self) -> float:
        return max(0.0, self.at_work_s - self.cells_s - self.lost_s)

    @property
    def rate(self) -> tuple[float, str]:
        return units.price_of_text(self.price)

    def amount(self, seconds: float) -> float:
        return self.rate[0] * seconds / HOUR_S

    @property
    def off_amount(self) -> float:
        """Of its disk since it was stopped; 0 where that price is not known."""
        return units.price_of_text(self.off_rate)[0] * self.off_s / HOUR_S if self.off_rate else 0.0


@dataclass(frozen=True)
class CellCost:
    """What a cell's attempts cost, by currency; `lost` are those that failed."""

    cell: str
    seconds: float
    amounts: dict[str, float]
    lost: dict[str, float]


@dataclass(frozen=True)
class Range:
    """`samples`: how many finished cells it was made from."""

    low: float
    high: float
    samples: int


@dataclass(frozen=True)
class Money:
    """Sums by currency; `to_go` is None where the time left is not known of every priced queue.
    `unseen` is what the time without an agent cost at most, and stopped disks. `priced` of `queues`
    have a price.
    """

    so_far: dict[str, float]
    to_go: dict[str, Range] | None
    priced: int
    queues: int
    boxes: tuple[BoxCost, ...] = ()
    cells: tuple[CellCost, ...] = ()
    unseen: dict[str, float] = field(default_factory=dict)

    @property
    def at_most(self) -> dict[str, float]:
        """What is not known to be free counts as spent."""
        return _added(self.so_far, self.unseen)


def money_of_run(
    prices: Mapping[str, str],
    view: RunView,
    left_s: Mapping[str, float | None],
    rentals: Mapping[str, Rental] | None = None,
) -> Money | None:
    """From the prices by box and the seconds left by queue; None where no box has a price."""
    priced = [queue for queue in view.queues if queue.box in prices]
    if not priced:
        return None
    known = {queue.name: seconds for queue in priced if (seconds := left_s[queue.name]) is not None}
    parts, part_prices, part_rentals = _by_rental(priced, prices, rentals or {})
    attempts = {_key(part): tuple(attempts_of_queue(part, view.at)) for part in parts}
    boxes = tuple(_box_costs(part_prices, parts, attempts, view.at, part_rentals))
    so_far: dict[str, float] = {}
    unseen: dict[str, float] = {}
    for box in boxes:
        currency = box.rate[1]
        so_far = _added(so_far, {currency: box.amount(box.at_work_s)})
        unseen = _added(unseen, {currency: box.amount(box.unseen_s)})
        if box.off_rate:
            unseen = _added(unseen, {units.price_of_text(box.off_rate)[1]: box.off_amount})
    return Money(
        so_far=_without_nothing(so_far),
        to_go=_to_go(prices, priced, known, view) if len(known) == len(priced) else None,
        priced=len(priced),
        queues=len(view.queues),
        boxes=boxes,
        cells=tuple(_cell_costs(part_prices, parts, attempts)),
        unseen=_without_nothing(unseen),
    )


def _by_rental(
    queues: Sequence[QueueView], prices: Mapping[str, str], rentals: Mapping[str, Rental]
) -> tuple[list[QueueView], dict[str, str], dict[str, Rental]]:
    """The queues, and apart from them as `BOX (ID)` what they did on boxes that were replaced;
    then the prices and rentals of all these.
    """
    parts, its_price, its_rental = list[QueueView](), {**prices}, {**rentals}
    for queue in queues:
        left = queue.events
        for one in rentals.get(queue.box, Rental()).before:
            name = f"{queue.box} ({one.id})"
            mine = [event for event in left if event.at < one.until]
            left = left[len(mine) :]
            over = Condition("done", "")
            parts.append(replace(queue, events=mine, box=name, is_alive=False, condition=over))
            its_price[name], its_rental[name] = one.price, one.rental
        parts.append(replace(queue, events=left))
    return parts, its_price, its_rental


def _key(queue: QueueView) -> tuple[str, str]:
    return queue.name, queue.box


# --- seconds


def attempts_of_queue(queue: QueueView, now: str) -> Iterator[Attempt]:
    """Each attempt with its time. One that never ended counts until the last word of its agent."""
    open_: dict[str, Event] = {}
    last = ""
    for event in queue.events:
        if event.type == "agent.started":
            yield from (_attempt(queue, one, last, is_lost=True) for one in open_.values())
            open_.clear()
        cell = event.cell
        if cell and event.type == "cell.started":
            if cell in open_:
                yield _attempt(queue, open_[cell], event.at, is_lost=True)
            open_[cell] = event
        elif cell in open_ and event.type in _ENDS:
            began = open_.pop(cell)
            yield _attempt(queue, began, event.at, event, is_lost=event.type not in _WELL)
        last = event.at
    for began in open_.values():
        if may_run(queue):
            seconds = timestamp.seconds_between(began.at, now, queue.clock_ahead_s)
            yield Attempt(str(began.cell), seconds, _share(began), is_lost=False)
        else:
            yield _attempt(queue, began, last, is_lost=True)


def _attempt(
    queue: QueueView, began: Event, until: str, ended: Event | None = None, *, is_lost: bool
) -> Attempt:
    seconds = ended.data.get("seconds") if ended else None
    if not isinstance(seconds, (int, float)):
        seconds = timestamp.seconds_between(began.at, until)
    return Attempt(str(began.cell), max(0.0, float(seconds)), _share(began), is_lost)


def _share(began: Event) -> float:
    share = began.data.get("share", 1.0)
    return float(share) if isinstance(share, (int, float)) and 0 < share <= 1 else 1.0


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


def _billed_s(queues: Sequence[QueueView], now: str, rental: Rental) -> float:
    """From the rental, or its first agent, until it was seen to end, or now."""
    firsts = [
        (timestamp.seconds_between(event.at, now, queue.clock_ahead_s), queue)
        for queue in queues
        for event in [next((e for e in queue.events if e.type == "agent.started"), None)]
        if event
    ]
    since_s = max((age_s for age_s, _queue in firsts), default=0.0)
    if rental.begun_at:
        since_s = max(since_s, timestamp.seconds_between(rental.begun_at, now))
    ended_s = timestamp.seconds_between(rental.ended_at, now) if rental.ended_at else 0.0
    return max(0.0, since_s - max(0.0, ended_s))


def _box_costs(
    prices: Mapping[str, str],
    queues: Sequence[QueueView],
    attempts: Mapping[tuple[str, str], Sequence[Attempt]],
    now: str,
    rentals: Mapping[str, Rental],
) -> Iterator[BoxCost]:
    for box in dict.fromkeys(queue.box for queue in queues):
        mine = [queue for queue in queues if queue.box == box]
        rental = rentals.get(box, Rental())
        billed_s = _billed_s(mine, now, rental)
        # Two agents at a time on one box bill it once.
        work_s = min(sum(at_work_s(queue, now) for queue in mine), billed_s or float("inf"))
        made = [one for queue in mine for one in attempts[_key(queue)]]
        until = rental.gone_at or now
        off_s = timestamp.seconds_between(rental.ended_at, until) if rental.ended_at else 0.0
        yield BoxCost(
            box,
            prices[box],
            at_work_s=work_s,
            cells_s=sum(one.box_s for one in made if not one.is_lost),
            lost_s=sum(one.box_s for one in made if one.is_lost),
            unseen_s=max(0.0, billed_s - work_s),
            off_s=max(0.0, off_s) if rental.off_rate else 0.0,
            off_rate=rental.off_rate,
        )


# --- amounts


def _cell_costs(
    prices: Mapping[str, str],
    queues: Iterable[QueueView],
    attempts: Mapping[tuple[str, str], Sequence[Attempt]],
) -> Iterator[CellCost]:
    """In the order in which they began; a cell that was moved adds up over its boxes."""
    seconds: dict[str, float] = defaultdict(float)
    amounts: dict[str, dict[str, float]] = defaultdict(dict)
    lost: dict[str, dict[str, float]] = defaultdict(dict)
    for queue in queues:
        amount, currency = units.price_of_text(prices[queue.box])
        for one in attempts[_key(queue)]:
            seconds[one.cell] += one.seconds
            paid = {currency: amount * one.box_s / HOUR_S}
            amounts[one.cell] = _added(amounts[one.cell], paid)
            if one.is_lost:
                lost[one.cell] = _added(lost[one.cell], paid)
    for cell, its_s in seconds.items():
        yield CellCost(cell, its_s, amounts[cell], lost.get(cell, {}))


def _to_go(
    prices: Mapping[str, str],
    queues: Iterable[QueueView],
    left_s: Mapping[str, float],
    view: RunView,
) -> dict[str, Range]:
    low, high, samples = spread_of_samples(view.cells)
    sums: dict[str, float] = {}
    for queue in queues:
        amount, currency = units.price_of_text(prices[queue.box])
        sums = _added(sums, {currency: amount * left_s[queue.name] / HOUR_S})
    return {
        currency: Range(total * low, total * high, samples)
        for currency, total in sums.items()
        if total
    }


def spread_of_samples(cells: Iterable[CellView]) -> tuple[float, float, int]:
    """The spread of those that are verified."""
    return spread_of(
        (cell.task, cell.seconds / cell.epochs)
        for cell in cells
        if cell.record and isinstance(cell.record.state, state.Verified) and cell.epochs
    )


def spread_of(timed: Iterable[tuple[str, float]]) -> tuple[float, float, int]:
    """How far an epoch's time was below and above its task's median, and in how many finished
    cells; of fewer than three much less and much more may come. `timed`: of each its task, and the
    seconds of an epoch.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for task, seconds in timed:
        found[task].append(seconds)
    ratios = [
        one / median for of in found.values() if (median := statistics.median(of)) for one in of
    ]
    low, high = min(ratios, default=1.0), max(ratios, default=1.0)
    if len(ratios) < FEWEST_SAMPLES:
        low, high = min(low, _UNSURE[0]), max(high, _UNSURE[1])
    return low, high, len(ratios)


def _added(sums: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """By currency: what stands in two of them is not added up."""
    return {
        currency: sums.get(currency, 0.0) + more.get(currency, 0.0)
        for currency in (*sums, *(one for one in more if one not in sums))
    }


def _without_nothing(sums: Mapping[str, float]) -> dict[str, float]:
    return {currency: total for currency, total in sums.items() if total}


# --- in words


def amounts(sums: Mapping[str, float]) -> str:
    """`14.20 CNY + 1.00 USD`."""
    return " + ".join(f"{total:.2f} {currency}" for currency, total in sums.items()) or "0"


def range_text(found: Mapping[str, Range]) -> str:
    """`9.00-12.00 CNY`; one number where it is the same to the cent and enough cells say so."""
    said = []
    for currency, one in found.items():
        low, high = f"{one.low:.2f}", f"{one.high:.2f}"
        said.append(f"{low} {currency}" if low == high else f"{low}-{high} {currency}")
    return " + ".join(said)


def money_sentence(money: Money) -> Sentence:
    """`14.20 CNY so far, 9.00-12.00 CNY to go`; of which boxes, where some have no price."""
    so_far = amounts(money.so_far)
    said = _("{so_far} so far", so_far=so_far)
    if money.to_go:
        said = _("{so_far} so far, {to_go} to go", so_far=so_far, to_go=range_text(money.to_go))
    if money.priced == money.queues:
        return said
    return _("{text} ({n} of {all} boxes)", text=said, n=money.priced, all=money.queues)
