"""What `cost`, `status`, `watch` and `launch` share: the money of a run, and its budget."""

from __future__ import annotations

import os
from collections.abc import Sequence

from boxcar.laptop.common import show
from boxcar.laptop.news.once import tell_once
from boxcar.laptop.places.site import Site
from boxcar.laptop.providers.rented_record import read_records
from boxcar.laptop.providers.whose import open_orders
from boxcar.laptop.run import budget
from boxcar.laptop.run.budget import Budget
from boxcar.laptop.run.rentals import prices_of_boxes, rentals_of_boxes
from boxcar.laptop.run.run_cost import Money, money_of_run
from boxcar.laptop.run.view import RunView
from boxcar.laptop.teardown.countdowns import near_countdowns
from boxcar.laptop.teardown.meters import open_meters_of
from boxcar.laptop.view.run_rows import left_by_queue
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _


def money_of_site(site: Site, view: RunView) -> Money | None:
    """None where no box has a price."""
    prices, rentals = prices_of_boxes(site.project), rentals_of_boxes(site.project)
    return money_of_run(prices, view, left_by_queue(view), rentals)


def budgets_of_site(site: Site, view: RunView) -> tuple[Budget, ...]:
    """Those of the job; none where it names none."""
    wanted = site.project.job.budget
    if not wanted:
        return ()
    ended = [box for box, one in rentals_of_boxes(site.project).items() if one.ended_at]
    return budget.budgets_of(wanted, money_of_site(site, view), ended, view.at)


def look_at_money(site: Site, view: RunView) -> None:
    """At each look: the boxes keep until when new cells may begin, and what is new of money is told
    to the run's chats.
    """
    found = budgets_of_site(site, view)
    budget.hold_budget(site, view, found, show.say)
    tell_money(site, view.at, found)


def tell_money(site: Site, now: str, found: Sequence[Budget] = ()) -> None:
    """Each mark of a budget, each open meter and each mark of a clock, once."""
    project, results = site.project, site.results
    news: dict[str, str] = {}
    for one in found:
        if one.warned_at:
            mark = 1.0 if one.is_spent else one.warned_at
            news[f"budget {one.currency} {one.amount:g} {mark:g}"] = one.sentence
    for meter in open_meters_of(project, results):
        text = _("ours is done, yours is open. {box} {what}", box=meter.box, what=meter.sentence)
        news[f"open {meter.box}"] = text
    for clock in near_countdowns(project, results, now):
        news[f"clock {clock.box} {clock.does} {clock.mark:g}"] = clock.sentence
    tell_once(site, news, os.environ)


def begin_until_of_launch(site: Site, view: RunView) -> str | None:
    """What a launch tells its agents. Raises InputError where nothing of a budget is left."""
    found = budgets_of_site(site, view)
    for one in found:
        if one.is_spent:
            raise InputError(
                _(
                    "budget: {spent} of {amount} are spent, so no cell would begin. Raise "
                    "`budget:` in the job file. For what was spent on what",
                    spent=one.spent_text,
                    amount=one.amount_text,
                ),
                Command("cost"),
            )
    return budget.begin_until(found, view.at)


def say_open_orders() -> None:
    """Boxes that may bill with nobody at work on them, by the records here: nobody is asked."""
    if n := len(open_orders(read_records()[0])):
        said = _(
            "{n} {n:box that you rented is|boxes that you rented are} in no run that goes on, and "
            "may bill. To look",
            n=n,
        )
        show.alarm(Message(said, Command("orphans")))
