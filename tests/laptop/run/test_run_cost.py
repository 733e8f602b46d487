from __future__ import annotations

from dataclasses import replace

import pytest
from run_on_disk import from_now

from boxcar.laptop.run import run_cost as costs
from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.state import CellRecord, Verified


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
    assert costs.at_work_s(two_nights, from_now(0)) == pytest.approx(3600 + 1800, abs=1)
    at_work = queue(event("agent.started", -3600), is_alive=True)
    assert costs.at_work_s(at_work, from_now(0)) == pytest.approx(3600, abs=1)
    assert costs.at_work_s(queue(), from_now(0)) == 0


def test_currencies_are_not_added_up_and_boxes_without_a_price_are_told() -> None:
    queues = tuple(
        QueueView(name, box, (event("agent.started", -3600),), is_alive=True)
        for name, box in (("q1", "a"), ("q2", "b"), ("q3", "c"))
    )
    view = RunView("r", from_now(0), queues, ())
    prices = {"a": "2 CNY/h", "b": "1 USD/h"}
    cost = costs.money_of_run(prices, view, {"q1": 1800.0, "q2": 3600.0, "q3": None})
    assert cost is not None
    said = costs.money_sentence(cost)
    assert said == "2.00 CNY + 1.00 USD so far, 0.50-2.00 CNY + 0.50-2.00 USD to go (2 of 3 boxes)"
    assert costs.money_sentence(cost).said("zh").startswith("已花 2.00 CNY + 1.00 USD，还需 ")


def test_what_is_to_go_is_told_only_where_it_is_known_and_nothing_where_no_price_is() -> None:
    view = RunView("r", from_now(0), (queue(event("agent.started", -3600), is_alive=True),), ())
    cost = costs.money_of_run({"box-a": "2 CNY/h"}, view, {"q": None})
    assert cost is not None and costs.money_sentence(cost) == "2.00 CNY so far"
    assert costs.money_of_run({}, view, {"q": None}) is None


# --- by hand: 2 GPUs at 3.00 CNY an hour. Agent from -4 h to -1 h. a: half the box, 1 h, failed;
# then 1 h, done. b beside it on the other half: 1.5 h, done. c: the whole box for 0.5 h, and the
# agent was killed in it. So cells 0.5 + 0.75, lost 0.5 + 0.5, idle 3 - 2.25.


def started(cell: str, at_h: float, share: float | None = None, attempt: int = 1) -> Event:
    data = {"cell": cell, "attempt": attempt} | ({"share": share} if share else {})
    return Event(1, "id", from_now(at_h * HOUR), "cell.started", data)


def ended(kind: str, cell: str, at_h: float) -> Event:
    return Event(1, "id", from_now(at_h * HOUR), kind, {"cell": cell, "attempt": 1})


HOUR = 3600.0


def by_hand() -> tuple[Event, ...]:
    return (
        event("agent.started", -4 * HOUR),
        started("a", -4.0, 0.5),
        started("b", -4.0, 0.5),
        ended("cell.retried", "a", -3.0),
        started("a", -3.0, 0.5, 2),
        ended("cell.succeeded", "b", -2.5),
        ended("cell.succeeded", "a", -2.0),
        started("c", -1.5),
        event("cell.progress", -HOUR),
    )


def of_hand(rental: costs.Rental | None = None) -> costs.Money:
    view = RunView("r", from_now(0), (queue(*by_hand()),), ())
    rentals = {"box-a": rental} if rental else None
    found = costs.money_of_run({"box-a": "3.00 CNY/h"}, view, {"q": 0.0}, rentals)
    assert found is not None
    return found


def test_the_sums_are_those_of_a_hand_calculation() -> None:
    money = of_hand()
    [box] = money.boxes
    hours = [s / HOUR for s in (box.at_work_s, box.cells_s, box.lost_s, box.idle_s, box.unseen_s)]
    assert hours == pytest.approx([3.0, 1.25, 1.0, 0.75, 1.0], abs=0.001)
    assert money.so_far == {"CNY": pytest.approx(9.0, abs=0.01)}
    assert money.at_most == {"CNY": pytest.approx(12.0, abs=0.01)}, "nobody saw the box end"
    paid = {one.cell: (one.amounts["CNY"], one.lost.get("CNY", 0.0)) for one in money.cells}
    assert paid == {
        "a": pytest.approx((3.0, 1.5), abs=0.01),
        "b": pytest.approx((2.25, 0.0), abs=0.01),
        "c": pytest.approx((1.5, 1.5), abs=0.01),
    }


def test_a_box_bills_from_its_rental_until_somebody_saw_it_end_and_its_disk_after_that() -> None:
    rental = costs.Rental(from_now(-5 * HOUR), from_now(-0.5 * HOUR), "0.20 CNY/h")
    [box] = of_hand(rental).boxes
    assert box.unseen_s / HOUR == pytest.approx(1.5, abs=0.001)
    assert box.off_amount == pytest.approx(0.10, abs=0.001), "a stopped disk bills, too"
    assert of_hand(rental).at_most == {"CNY": pytest.approx(9.0 + 4.5 + 0.1, abs=0.01)}
    assert of_hand(replace(rental, off_rate="")).at_most["CNY"] == pytest.approx(13.5, abs=0.01)
    [box] = of_hand(replace(rental, gone_at=from_now(-0.25 * HOUR))).boxes
    assert box.off_amount == pytest.approx(0.05, abs=0.001), "until it was destroyed"


def test_a_box_that_was_replaced_is_paid_at_its_own_price() -> None:
    """By hand: rented -6 h for 1.00 an hour, at work from -5.5 h to -4 h, then outbid and stopped,
    its disk at 0.10. Another one, asked for at -3 h, for 3.00, at work from -2.5 h to -0.5 h. The
    cell was broken off after 1.5 h on the first, and done after 2 h on the second.
    """
    events = (
        event("agent.started", -5.5 * HOUR),
        started("a", -5.5),
        event("cell.progress", -4 * HOUR),
        event("agent.started", -2.5 * HOUR),
        started("a", -2.5, attempt=2),
        ended("cell.succeeded", "a", -0.5),
    )
    first = costs.Rental(from_now(-6 * HOUR), from_now(-4 * HOUR), "0.10 CNY/h")
    before = (costs.Replaced("1001", "1.00 CNY/h", from_now(-3 * HOUR), first),)
    rental = costs.Rental(from_now(-3 * HOUR), before=before)
    view = RunView("r", from_now(0), (queue(*events),), ())
    money = costs.money_of_run({"box-a": "3.00 CNY/h"}, view, {"q": 0.0}, {"box-a": rental})
    assert money is not None
    old, new = money.boxes
    assert (old.box, new.box) == ("box-a (1001)", "box-a")
    of_old, of_new = (old.at_work_s, old.lost_s, old.unseen_s), (new.at_work_s, new.unseen_s)
    assert [s / HOUR for s in of_old] == pytest.approx([1.5, 1.5, 0.5], abs=0.001)
    assert [s / HOUR for s in of_new] == pytest.approx([2.0, 1.0], abs=0.001)
    assert money.so_far["CNY"] == pytest.approx(1.5 * 1.0 + 2.0 * 3.0, abs=0.01)
    assert money.at_most["CNY"] == pytest.approx(7.5 + 0.5 * 1.0 + 1.0 * 3.0 + 0.4, abs=0.01)
    [cell] = money.cells
    paid = (cell.amounts["CNY"], cell.lost["CNY"], cell.seconds / HOUR)
    assert paid == pytest.approx((7.5, 1.5, 3.5), abs=0.01)


@pytest.mark.parametrize(("took", "said"), [((), None), ((60,), (0.5, 2.0, 1)),
    ((60, 60, 90), (1.0, 1.5, 3)), ((50, 60, 60, 120), (5 / 6, 2.0, 4))])  # fmt: skip
def test_what_is_to_come_is_never_one_number_of_fewer_than_three(
    took: tuple[float, ...], said: tuple[float, float, int] | None
) -> None:
    done = [
        CellView(f"c{n}", "q", "box-a", "c", "t", 1, n, seconds=s,
                 record=CellRecord(Verified(1, from_now(0), "ab" * 32), 1, s))
        for n, s in enumerate(took)
    ]  # fmt: skip
    assert costs.spread_of_samples(done) == pytest.approx(said or (0.5, 2.0, 0))
