from __future__ import annotations

import pytest
from run_on_disk import from_now

from boxcar.laptop.run.view import Condition, QueueView, RunView
from boxcar.laptop.view import run_rows
from boxcar.shared.files.journal_chain import Event


def event(type_: str, at_s: float) -> Event:
    return Event(1, "id", from_now(at_s), type_, {})


def queue(*events: Event, is_alive: bool = False) -> QueueView:
    condition = Condition("running" if is_alive else "done", "")
    return QueueView("q", "box-a", events, is_alive=is_alive, condition=condition)


def test_counted_is_the_time_in_which_an_agent_was_at_work() -> None:
    two_nights = queue(
        event("agent.started", -90_000), event("queue.stopped", -86_400),
        event("agent.started", -3600), event("queue.done", -1800),
    )  # fmt: skip
    assert run_rows.at_work_s(two_nights, from_now(0)) == pytest.approx(3600 + 1800, abs=1)
    at_work = queue(event("agent.started", -3600), is_alive=True)
    assert run_rows.at_work_s(at_work, from_now(0)) == pytest.approx(3600, abs=1)
    assert run_rows.at_work_s(queue(), from_now(0)) == 0


def test_currencies_are_not_added_up_and_boxes_without_a_price_are_told() -> None:
    queues = tuple(
        QueueView(name, box, (event("agent.started", -3600),), is_alive=True)
        for name, box in (("q1", "a"), ("q2", "b"), ("q3", "c"))
    )
    view = RunView("r", from_now(0), queues, ())
    prices = {"a": "2 CNY/h", "b": "1 USD/h"}
    cost = run_rows.money_of_run(prices, view, {"q1": 1800.0, "q2": 3600.0, "q3": None})
    assert cost is not None
    said = run_rows.money_sentence(cost)
    assert said == "2.00 CNY + 1.00 USD so far, 1.00 CNY + 1.00 USD to go (2 of 3 boxes)"
    assert run_rows.money_sentence(cost).said("zh").startswith("已花 2.00 CNY + 1.00 USD，还需 ")


def test_what_is_to_go_is_told_only_where_it_is_known_and_nothing_where_no_price_is() -> None:
    view = RunView("r", from_now(0), (queue(event("agent.started", -3600), is_alive=True),), ())
    cost = run_rows.money_of_run({"box-a": "2 CNY/h"}, view, {"q": None})
    assert cost is not None and run_rows.money_sentence(cost) == "2.00 CNY so far"
    assert run_rows.money_of_run({}, view, {"q": None}) is None
