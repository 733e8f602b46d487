"""`invoke cost`: what the run has cost, on which box and for which cell, and what is to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.laptop.common import show, units
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run.budget import Budget, unpriced
from boxcar.laptop.run.look import look_at_run, view_of_journals
from boxcar.laptop.run.rentals import prices_of_boxes
from boxcar.laptop.run.run_cost import FEWEST_SAMPLES, BoxCost, CellCost, Money, amounts, range_text
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs import spending
from boxcar.shared import timestamp
from boxcar.shared.errors import Message
from boxcar.shared.sentence import _


def cost(project: Project, *, as_json: bool = False) -> int:
    """Show it. Returns 1 where a budget is spent, or where no box has a price."""
    with open_site(project, show.say) as site:
        if is_over(site):
            view = view_of_journals(site, timestamp.utc_now())
        else:
            with show.waiting(_("asking the boxes")):
                site.refresh()
            view = look_at_run(site, timestamp.utc_now())
            spending.look_at_money(site, view)
        money, budgets = spending.money_of_site(site, view), spending.budgets_of_site(site, view)
        if as_json:
            show.json_document("cost", _document(site, view, money, budgets))
        elif money is None:
            show.say(_no_price())
        else:
            _present(site, view, money, budgets)
        return 1 if money is None or any(one.is_spent for one in budgets) else 0


def _no_price() -> Message:
    return Message(
        _(
            "no box of this run has a price. Write what an hour of a box costs into the job file: "
            'price: "1.98 CNY/h"'
        )
    )


def _present(site: Site, view: RunView, money: Money, budgets: Sequence[Budget]) -> None:
    run, states = site.plan.run, {cell.name: cell.word for cell in view.cells}
    columns = ("box", "price", "at work", "cells", "failed", "idle", "no agent", "sum")
    show.table(_("{run}: boxes", run=run), columns, [_box_row(box) for box in money.boxes])
    rows = [_cell_row(one, states.get(one.cell, "")) for one in money.cells]
    show.table(_("{run}: cells", run=run), ("cell", "state", "time", "failed", "sum"), rows)
    for sentence in _sentences(site, money, budgets):
        show.line(sentence)


def _box_row(box: BoxCost) -> Sequence[object]:
    parts = (box.cells_s, box.lost_s, box.idle_s, box.unseen_s, box.at_work_s + box.unseen_s)
    paid = [f"{box.amount(seconds):.2f}" for seconds in parts]
    return (box.box, box.price, units.duration(box.at_work_s), *paid)


def _cell_row(one: CellCost, state: str) -> Sequence[object]:
    lost = amounts(one.lost) if one.lost else None
    word = state_sentence(state) if state else None
    return (one.cell, word, units.duration(one.seconds), lost, amounts(one.amounts))


def _sentences(site: Site, money: Money, budgets: Sequence[Budget]) -> Iterator[str]:
    yield _("so far: {amounts}, while agents were at work", amounts=amounts(money.so_far))
    if money.unseen:
        yield _(
            "at most {amounts} more without an agent: a box bills unless it was off, which only "
            "the console knows",
            amounts=amounts(money.unseen),
        )
    if money.to_go is None:
        yield _("to go: not known; nothing says how long the rest takes")
    elif money.to_go:
        samples = min(one.samples for one in money.to_go.values())
        said = _("to go: {range}", range=range_text(money.to_go))
        if samples < FEWEST_SAMPLES:
            said = _("{text}, a guess: only {n} finished {n:cell|cells}", text=said, n=samples)
        yield said
    for box in money.boxes:
        if box.off_s and box.off_rate:
            yield _(
                "{box}: its disk bills {rate} since it was stopped: {amount:.2f}",
                box=box.box,
                rate=box.off_rate,
                amount=box.off_amount,
            )
    for one in budgets:
        yield one.sentence
        if one.until and not one.is_spent:
            yield _("at all rates at once it lasts until {at} UTC", at=one.until[:16])
    prices, boxes = prices_of_boxes(site.project), [box.name for box in site.plan.boxes]
    if missing := ", ".join(box for box in boxes if box not in prices):
        yield _("not counted, for want of a price: {boxes}", boxes=missing)
    elif missing := unpriced(site.project.job.budget, prices, boxes):
        yield _("no budget counts {boxes}: it bills in another currency", boxes=missing)
    for what in site.project.profile.meter_stop.still_bills:
        yield _("not counted: {what}", what=what)


def _document(
    site: Site, view: RunView, money: Money | None, budgets: Sequence[Budget]
) -> dict[str, object]:
    prices = prices_of_boxes(site.project)
    to_go = money.to_go if money else None
    return {
        "run": site.plan.run,
        "at": view.at,
        "so_far": money.so_far if money else {},
        "unseen": money.unseen if money else {},
        "to_go": to_go,
        "boxes": money.boxes if money else (),
        "cells": money.cells if money else (),
        "unpriced": [box.name for box in site.plan.boxes if box.name not in prices],
        "budgets": budgets,
    }
