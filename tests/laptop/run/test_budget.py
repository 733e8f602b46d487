"""How much of a budget is spent, and until when new cells may begin; by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter, ValidationError
from run_on_disk import RunOnDisk, agent_started, from_now, make_run

from boxcar.laptop.project.job_values import Budgets
from boxcar.laptop.run import budget as budgets
from boxcar.laptop.run.budget import Budget, begin_until, budgets_of
from boxcar.laptop.run.run_cost import BoxCost, Money
from boxcar.shared import timestamp
from boxcar.shared.files import codec, control
from boxcar.shared.files.control import Control

HOUR = 3600.0
NOW = from_now(0)


def money(*boxes: tuple[str, str, float, float]) -> Money:
    """Box, price, hours at work, hours without an agent."""
    made = tuple(BoxCost(b, p, w * HOUR, 0.0, 0.0, u * HOUR) for b, p, w, u in boxes)
    so_far: dict[str, float] = {}
    unseen: dict[str, float] = {}
    for one in made:
        so_far[one.rate[1]] = so_far.get(one.rate[1], 0.0) + one.amount(one.at_work_s)
        unseen[one.rate[1]] = unseen.get(one.rate[1], 0.0) + one.amount(one.unseen_s)
    return Money(so_far, None, len(made), len(made), made, unseen=unseen)


TWO = money(("a", "2 CNY/h", 10, 5), ("b", "3 CNY/h", 10, 0), ("c", "1 USD/h", 4, 0))


def hours(until: str | None) -> float:
    assert until
    return timestamp.seconds_between(NOW, until) / HOUR


def test_what_is_left_lasts_for_all_boxes_as_if_all_billed() -> None:
    """10 x 2 + 5 x 2 (nobody saw it off) + 10 x 3 = 60 of 100; 40 / (2 + 3) = 8 hours."""
    [cny] = budgets_of({"CNY": 100.0}, TWO, (), NOW)
    assert (cny.spent, cny.rate) == (pytest.approx(60.0), 5.0)
    assert hours(cny.until) == pytest.approx(8.0) and cny.warned_at == 0.5
    [one_off] = budgets_of({"CNY": 100.0}, TWO, ("a",), NOW)
    assert hours(one_off.until) == pytest.approx(40 / 3)


def test_currencies_are_held_apart_and_the_first_that_ends_counts() -> None:
    found = budgets_of({"CNY": 100.0, "USD": 5.0, "EUR": 9.0}, TWO, (), NOW)
    assert [round(one.spent, 2) for one in found] == [60.0, 4.0, 0.0]
    assert hours(begin_until(found, NOW)) == pytest.approx(1.0), "1 USD is left, at 1 an hour"
    assert found[2].until is None, "nothing bills in it"
    assert begin_until(found[2:], NOW) is None
    assert begin_until(budgets_of({"USD": 4.0}, TWO, (), NOW), NOW) == NOW


@pytest.mark.parametrize(
    ("amount", "mark", "is_spent"),
    [(121.0, None, False), (120.0, 0.5, False), (75.0, 0.8, False), (63.0, 0.95, False),
     (60.0, 0.95, True)],
)  # fmt: skip
def test_it_warns_at_50_80_and_95_and_is_spent_at_100(
    amount: float, mark: float | None, is_spent: bool
) -> None:
    [one] = budgets_of({"CNY": amount}, TWO, (), NOW)
    assert (one.warned_at, one.is_spent) == (mark, is_spent)
    assert ("no new cell begins" in one.sentence) == is_spent


def test_a_box_of_another_currency_is_named() -> None:
    prices = {"a": "2 CNY/h", "c": "1 USD/h"}
    assert budgets.unpriced({"CNY": 1.0}, prices, ["a", "b", "c"]) == "b, c"
    assert budgets.unpriced({}, prices, ["a", "b", "c"]) == ""


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    made = make_run(tmp_path)
    made.say("queue_1", agent_started())
    return made


def test_each_look_tells_the_boxes_that_are_at_work_and_leaves_a_persons_word(
    run: RunOnDisk,
) -> None:
    until = from_now(7200)
    spent = (Budget("CNY", 9.0, 1.0, 4.0, until),)
    said: list[str] = []
    path = run.project.on_tier.control("queue_1")
    view = run.look()
    queue = replace(view.queues[0], is_alive=True, clock_ahead_s=60.0)
    view = replace(view, queues=(queue, *view.queues[1:]))
    path.parent.mkdir(parents=True, exist_ok=True)
    asked_at = from_now(-5)
    path.write_bytes(codec.to_document(Control(control.DRAIN, asked_at)))
    budgets.hold_budget(run.site, view, spent, said.append)
    kept = control.read_control(path)
    assert (kept.want, kept.at) == (control.DRAIN, asked_at), "somebody drained meanwhile"
    assert kept.begin_until and timestamp.seconds_between(until, kept.begin_until) == 60.0
    before = path.stat().st_mtime_ns
    budgets.hold_budget(run.site, view, spent, said.append)
    assert path.stat().st_mtime_ns == before and said == [], "it says nothing new"
    assert not run.project.on_tier.control("queue_2").exists(), "no agent is there"
    for moved_s in (600.0, -600.0):
        moved = (replace(spent[0], until=timestamp.after(until, moved_s)),)
        budgets.hold_budget(run.site, view, moved, said.append)
        found = control.read_control(path).begin_until
        assert found == timestamp.after(until, moved_s + 60.0), "later, and earlier"


def test_a_budget_is_an_amount_in_one_currency_or_several(tmp_path) -> None:
    read = TypeAdapter(Budgets).validate_python
    assert read("200 CNY") == {"CNY": 200.0}
    assert read(["200 CNY", "30.5 USD"]) == {"CNY": 200.0, "USD": 30.5}
    for wrong in ("200", "CNY 200", "0 CNY", "200 cny", ["1 CNY", "2 CNY"], 200, ["x"]):
        with pytest.raises(ValidationError, match=r"amount|twice"):
            read(wrong)
