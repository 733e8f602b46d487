from __future__ import annotations

from typing import Any

from boxcar.laptop.run.undelivered import count_unsent, delivery_problems
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal_chain import Event

NO = "answered 200: no such robot"


def event(seq: int, type: str, **data: Any) -> Event:
    return Event(seq, "id", "2026-11-22T22:41:07.123Z", type, data)


DONE = event(1, "queue.done", verified=1, failed=0)


def of(*cursors: Cursor, events: tuple[Event, ...] = (DONE,), is_over: bool = False) -> list[str]:
    sent = Delivered({str(number): cursor for number, cursor in enumerate(cursors)})
    return list(map(str, delivery_problems("q1", events, sent, is_over=is_over)))


def test_a_refusal_after_the_agents_last_word_is_told_in_the_services_words() -> None:
    assert of(Cursor(0, channel="feishu", refused=NO)) == [
        "q1: feishu rejects its notifications: answered 200: no such robot"
    ]


def test_what_a_warning_has_said_already_is_not_said_twice() -> None:
    said = event(2, "box.warning", what="news_refused", text=f"feishu refused a message: {NO}")
    assert of(Cursor(0, channel="feishu", refused=NO), events=(DONE, said)) == []


def test_what_was_set_aside_is_told_with_the_services_last_words_also_afterwards() -> None:
    assert of(Cursor(9, channel="lark", set_aside=2, set_aside_why=NO)) == [
        "q1: 2 notifications were not delivered and will not be retried: "
        f"lark rejected each of them 20 times: {NO}"
    ]


def test_what_an_agent_left_is_told_with_what_sends_it() -> None:
    [told] = of(Cursor(0, channel="feishu"), is_over=True)
    assert told == "q1: 1 notification was not delivered yet; invoke watch makes its box send it"
    assert of(Cursor(0, channel="feishu")) == []
    assert of(Cursor(1, channel="feishu"), is_over=True) == []
    assert of(is_over=True) == [], "nobody had asked for any"


def test_what_this_machine_could_not_send_is_counted_with_the_reason() -> None:
    assert of(Cursor(0, channel="telegram", away="ConnectTimeout")) == [
        "q1: 1 notification was not delivered to telegram from here (ConnectTimeout); "
        "the next update retries"
    ]
    assert of(Cursor(1, channel="telegram", away="ConnectTimeout")) == []


def test_nothing_is_told_of_a_queue_whose_news_arrived() -> None:
    assert of(Cursor(1, channel="feishu"), Cursor(1)) == []
    assert count_unsent((DONE,), Delivered({"x": Cursor(0)})) == 1
