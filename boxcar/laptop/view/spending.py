"""What a run has cost and will cost, from the prices that a person typed, and what runs out next.
Pure.

Counted is the time in which an agent was at work on a box. What the box costs before, between and
after that is the platform's to say; so is what it does to a box that is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boxcar.laptop.common import units
from boxcar.laptop.run import condition
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import timestamp
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

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


def money_sentence(money: Money) -> Sentence:
    """`14.20 CNY so far, 9.00 CNY to go`; of which boxes, where some have no price."""
    so_far = amounts(money.so_far)
    said = _("{so_far} so far", so_far=so_far)
    if money.to_go:
        said = _("{so_far} so far, {to_go} to go", so_far=so_far, to_go=amounts(money.to_go))
    if money.priced == money.queues:
        return said
    return _("{text} ({n} of {all} boxes)", text=said, n=money.priced, all=money.queues)


def _sums(
    prices: Mapping[str, str], queues: Iterable[QueueView], seconds: Mapping[str, float]
) -> dict[str, float]:
    """By currency: what stands in two of them is not added up."""
    sums: dict[str, float] = {}
    for queue in queues:
        amount, currency = units.price_of_text(prices[queue.box])
        sums[currency] = sums.get(currency, 0.0) + amount * seconds[queue.name] / HOUR_S
    return {currency: total for currency, total in sums.items() if total}


def amounts(sums: Mapping[str, float]) -> str:
    """`14.20 CNY + 1.00 USD`."""
    return " + ".join(f"{total:.2f} {currency}" for currency, total in sums.items()) or "0"


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
