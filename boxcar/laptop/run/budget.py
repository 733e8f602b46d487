"""The job's budget: how much of it is spent, and until when new cells may begin. Pure, but for
`hold_budget`, which tells the boxes.

Agents know no prices. So each look writes an instant into the control of each queue: what is left
of the budget, at the rates of all boxes as if all of them bill, from now on. No cell begins after
it, also while the laptop sleeps; what runs then runs on. What is not known to be free is spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.run_cost import HOUR_S, Money
from boxcar.laptop.run.view import RunView
from boxcar.shared import timestamp
from boxcar.shared.errors import BoxcarError, DamagedError, message_of
from boxcar.shared.files import control
from boxcar.shared.files.control import Control
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.wire import run_asks

WARN_AT = (0.5, 0.8, 0.95)
# What changes less is not written again.
_LEAST_CHANGE_S = 120.0
# A box without a price in a budget's currency spends nothing that anybody could count.
_FOR_EVER_S = 10 * 365 * 24 * HOUR_S


@dataclass(frozen=True)
class Budget:
    """`amount` of one currency, of which `spent` is gone at most. `rate`: of an hour of all boxes
    that may bill in it; `until`: when the rest is spent at that rate (UTC), None where nothing is.
    """

    currency: str
    amount: float
    spent: float
    rate: float
    until: str | None

    @property
    def share(self) -> float:
        return self.spent / self.amount

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.amount

    @property
    def warned_at(self) -> float | None:
        """The highest of the marks that is passed."""
        return max((mark for mark in WARN_AT if self.share >= mark), default=None)

    @property
    def spent_text(self) -> str:
        return f"{self.spent:.2f}"

    @property
    def amount_text(self) -> str:
        return f"{self.amount:g} {self.currency}"

    @property
    def sentence(self) -> Sentence:
        of = {"spent": self.spent_text, "amount": self.amount_text}
        if self.is_spent:
            return _(
                "budget: {spent} of {amount} are spent; no new cell begins. Raise `budget:` in "
                "the job file, then launch",
                **of,
            )
        return _("budget: {spent} of {amount} ({percent:.0f} %)", percent=100 * self.share, **of)


def budgets_of(
    budget: Mapping[str, float], money: Money | None, ended: Sequence[str], now: str
) -> tuple[Budget, ...]:
    """`budget` by currency; `ended` are boxes that somebody saw end, which bill no more."""
    boxes = money.boxes if money else ()
    at_most = money.at_most if money else {}
    found = []
    for currency, amount in budget.items():
        mine = [box.rate[0] for box in boxes if box.rate[1] == currency and box.box not in ended]
        rate, spent = sum(mine), at_most.get(currency, 0.0)
        left_s = min(_FOR_EVER_S, max(0.0, amount - spent) / rate * HOUR_S) if rate else None
        until = None if left_s is None else timestamp.after(now, left_s)
        found.append(Budget(currency, amount, spent, rate, until))
    return tuple(found)


def begin_until(budgets: Sequence[Budget], now: str) -> str | None:
    """When the last new cell may begin; None where no budget is held."""
    if any(one.is_spent for one in budgets):
        return now
    return min((one.until for one in budgets if one.until), default=None)


def unpriced(budget: Mapping[str, float], prices: Mapping[str, str], boxes: Sequence[str]) -> str:
    """The boxes whose cost no budget counts, by name; '' where there is none."""
    missing = [box for box in boxes if prices.get(box, "").partition(" ")[2][:3] not in budget]
    return ", ".join(missing) if budget else ""


def hold_budget(
    run: OpenRun, view: RunView, budgets: Sequence[Budget], say: Callable[[str], None]
) -> None:
    """Have each box that is reached keep until when cells may begin. Said where it cannot."""
    until = begin_until(budgets, view.at)
    if until is None:
        return
    for queue in view.queues:
        if not may_run(queue) or not run.is_planned(queue.box) or run.is_out_of_reach(queue.box):
            continue
        # By the box's own clock, which is what its agent has.
        mine = timestamp.after(until, queue.clock_ahead_s)
        if not _differs(_kept(run, queue.name), mine):
            continue
        limit = Control(control.RUN, view.at, begin_until=mine)
        try:
            run.ask(queue.box, run_asks.WriteControl(queue.name, limit, is_limit=True))
        except (BoxcarError, OSError) as error:
            say(
                _(
                    "{box}: could not be told until when the budget lasts: {why}",
                    box=queue.box,
                    why=message_of(error).text,
                )
            )


def _kept(run: OpenRun, queue: str) -> str | None:
    with contextlib.suppress(OSError, DamagedError):
        return control.read_control(run.tier.control(queue)).begin_until
    return None


def _differs(kept: str | None, now: str) -> bool:
    if kept is None:
        return True
    moved_s = max(timestamp.seconds_between(kept, now), timestamp.seconds_between(now, kept))
    return moved_s >= _LEAST_CHANGE_S
