from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files import journal
from boxcar.shared.files.journal import Journal
from onbox.machine.credentials import Webhook
from onbox.queue.reporter import Reporter
from onbox.webhooks.deliver import Deliverer

COMMON = {"run": "r", "queue": "q", "box": "b"}


class Watching:
    """In the deliverer's place: notes how much of the journal is durable at each wake."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[int] = []
        self.flushed: list[float] = []

    def start(self) -> None:
        self.seen.append(-1)

    def wake(self) -> None:
        self.seen.append(len(journal.read_journal(self.path).events))

    def refusals(self) -> list[str]:
        return []

    def status(self) -> dict[str, Any]:
        return {"one": {"seq": 1}}

    def close(self, flush_s: float) -> None:
        self.flushed.append(flush_s)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "q.jsonl"


def open_journal(path: Path) -> Journal:
    return Journal(path, COMMON)


def test_an_event_is_in_the_journal_before_a_webhook_hears_of_it(path):
    watching = Watching(path)
    reporter = Reporter(open_journal(path), watching)  # type: ignore[arg-type]
    reporter.say("queue.started", cells=3)
    reporter.say("cell.started", cell="c", attempt=1)
    assert watching.seen == [-1, 1, 2]
    assert journal.read_journal(path).events[0].data == COMMON | {"cells": 3}
    assert reporter.webhooks() == {"one": {"seq": 1}}
    reporter.close(2.5)
    assert watching.flushed == [2.5]


def test_without_webhooks_it_only_writes_the_journal(path):
    reporter = Reporter(open_journal(path), None)
    reporter.say("queue.started", cells=3)
    assert reporter.webhooks() == {}
    reporter.close(1.0)
    assert len(journal.read_journal(path).events) == 1


def test_a_warning_is_said_once(path):
    reporter = Reporter(open_journal(path), None)
    for _ in range(3):
        reporter.warn("queue_line", "line 3 is bad")
    reporter.warn("queue_line", "line 4 is bad", "c")
    found = journal.read_journal(path).events
    assert [event.data["text"] for event in found] == ["line 3 is bad", "line 4 is bad"]
    assert [event.cell for event in found] == [None, "c"]


def test_what_is_said_once_for_a_cell_is_not_said_again_by_the_next_agent(path):
    for text in ("ran for 10 minutes", "ran for 10 minutes again"):
        reporter = Reporter(open_journal(path), None)
        reporter.warn_once("no_checkpoint", text, "c")
    reporter.warn_once("no_checkpoint", "another cell", "d")
    reporter.warn_once("resume_kind", "another matter", "c")
    found = [event.data["text"] for event in journal.read_journal(path).events]
    assert found == ["ran for 10 minutes", "another cell", "another matter"]


def test_the_state_is_that_of_all_events_also_of_an_earlier_agent(path):
    open_journal(path).append("cell.started", cell="c", attempt=4)
    reporter = Reporter(open_journal(path), None)
    assert reporter.state().cell("c").attempts == 4
    reporter.say("cell.started", cell="c", attempt=5)
    assert reporter.state().cell("c").attempts == 5
    assert reporter.state() is reporter.state()


def test_the_newest_event_of_a_cell_is_found(path):
    reporter = Reporter(open_journal(path), None)
    for cell, attempt in (("a", 1), ("b", 1), ("a", 2), ("b", 2)):
        reporter.say("cell.started", cell=cell, attempt=attempt)
    found = reporter.last("cell.started", "a")
    assert found
    assert found.data["attempt"] == 2
    assert reporter.last("cell.started", "c") is None
    assert reporter.last("cell.retried", "a") is None


def test_the_largest_result_so_far_is_what_room_is_kept_for(path):
    reporter = Reporter(open_journal(path), None)
    assert reporter.largest_result_bytes() == 0
    about = {"cell": "c", "attempt": 1, "manifest_sha256": "a" * 64, "files": 1}
    for size_bytes in (10, 30, 20):
        reporter.say("cell.synced", **about, size_bytes=size_bytes)
    assert reporter.largest_result_bytes() == 30


def test_a_torn_line_is_named_and_a_new_event_takes_its_place(path):
    open_journal(path).append("queue.started", cells=1)
    with path.open("ab") as file:
        file.write(b'{"v":1,"seq":2,"ty')
    reporter = Reporter(open_journal(path), None)
    assert reporter.torn_file
    assert reporter.torn_file.read_bytes() == b'{"v":1,"seq":2,"ty'
    reporter.say("queue.done", verified=0, failed=0)
    types = [event.type for event in journal.read_journal(path).events]
    assert types == ["queue.started", "queue.done"]


def test_two_threads_that_speak_at_once_leave_a_whole_journal(path):
    reporter = Reporter(open_journal(path), None)

    def speak(name: str) -> None:
        for number in range(50):
            reporter.say("cell.progress", cell=name, attempt=1, progress={"step": number})
            reporter.state()

    threads = [threading.Thread(target=speak, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = journal.read_journal(path).events
    assert [event.seq for event in found] == list(range(1, 151))
    assert reporter.state().last_seq == 150


def test_a_damaged_cursor_of_the_webhooks_is_said_and_stops_no_queue(path, tmp_path):
    cursor = tmp_path / "delivered.json"
    cursor.write_bytes(b"{")
    webhook = Webhook("http://127.0.0.1:9/", "whsec_" + "A" * 32)
    reporter = Reporter(open_journal(path), Deliverer(path, cursor, [webhook]))
    reporter.say("queue.started", cells=3)
    assert reporter.webhooks() == {}
    reporter.close(1.0)
    warning, started = journal.read_journal(path).events
    assert warning.data["what"] == "webhooks_off"
    assert str(cursor) in warning.data["text"]
    assert started.type == "queue.started"
    assert cursor.read_bytes() == b"{"


def test_what_a_chat_refuses_is_a_warning_once_and_written_by_the_agents_loop(path):
    class Refusing(Watching):
        def refusals(self) -> list[str]:
            return ["feishu refused a message: answered 200: no such robot"]

    reporter = Reporter(open_journal(path), Refusing(path))  # type: ignore[arg-type]
    assert not journal.read_journal(path).events
    reporter.webhooks()
    reporter.webhooks()
    [told] = journal.read_journal(path).events
    assert (told.type, told.data["what"]) == ("box.warning", "news_refused")


@pytest.mark.parametrize(
    ("ended", "was_left"),
    [
        pytest.param(("cell.preempted", {}), True, id="stopped"),
        pytest.param(("cell.retried", {"failure": "EXIT85", "reason": "", "wait_s": 0}), True),
        pytest.param(("cell.retried", {"failure": "137-N", "reason": "", "wait_s": 0}), False),
        pytest.param(None, False, id="running"),
    ],
)
def test_a_script_was_left_where_it_saved_when_it_was_asked_to(path, ended, was_left):
    reporter = Reporter(open_journal(path), None)
    reporter.say("cell.started", cell="a", attempt=1)
    if ended:
        reporter.say(ended[0], cell="a", attempt=1, **ended[1])
    assert reporter.was_left("a") is was_left


def test_an_event_that_needs_a_person_says_what_to_type(path):
    reporter = Reporter(open_journal(path), None)
    reporter.warn("webhooks_off", "no webhooks are sent: x")
    reporter.warn("code_restored", "a file of the code was restored")
    reporter.say("queue.stopped", reason="x", by="trouble")
    assert [event.data.get("needs") for event in journal.read_journal(path).events] == [
        "repair --put-back",
        None,
        "status",
    ]
