"""A box that is through with its cells stops itself: after notice, on proof, and never in doubt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from boxcar.shared.disk import lock
from boxcar.shared.files import release
from boxcar.shared.files.own_end import OwnEnd
from boxcar.shared.files.plan import IdleEnd
from boxcar.shared.news import wanted
from onbox import idle_end
from onbox.agent import between_agents
from onbox.answers import others
from onbox.machine import end_itself, gpus, place
from onbox.machine.credentials import Credentials

CELLS: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
VAST = {"CONTAINER_ID": "4711", "CONTAINER_API_KEY": "not-to-be-told"}


@pytest.fixture(autouse=True)
def _a_box_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short waits, and nobody else's processes and terminals."""
    monkeypatch.setattr(idle_end, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(idle_end, "NOTICE_S", 0.5)
    monkeypatch.setattr(idle_end, "HEARD_S", 0.1)
    monkeypatch.setattr(others, "_by_process", lambda own: {})
    (tmp_path / "pts").mkdir()
    monkeypatch.setattr(idle_end._typed, "__defaults__", (tmp_path / "pts",))


class Box:
    """One whose agent has ended; `off` is what its `shutdown` leaves."""

    def __init__(self, run: Any, **asked: Any) -> None:
        self.run, self.off = run, run.root / "off"
        found = release.read_release(run.release)
        plan = release.read_plan(run.release)
        self.place = place.of_queue(plan, run.release, found, "q1")
        asked = asked or {"from_box": f"touch {self.off}"}
        self.asked = IdleEnd(0, **asked)
        self.start_record().write_text("{}")

    def start_record(self) -> Path:
        return self.place.scratch.start("q1")

    def begins(self) -> threading.Thread:
        work = lambda: idle_end.run(self.place, self.asked, Credentials())  # noqa: E731
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def told(self, what: str = "box_ends") -> list[tuple[str, bool]]:
        found = self.run.events("box.warning")
        return [
            (event.data["text"], event.data["is_over"])
            for event in found
            if event.data["what"] == what
        ]


@pytest.fixture
def box(make_run: Callable[..., Any]) -> Iterator[Box]:
    run = make_run(CELLS)
    assert run.finish() == 0
    one = Box(run)
    yield one
    one.start_record().unlink(missing_ok=True)  # which ends whoever still waits


def test_it_gives_notice_and_stops_itself_by_its_own_program(box):
    box.begins()
    until(box.off.exists)
    (notice, *_rest) = box.told()
    assert "box-a is idle and every cell that ran there is proven: it stops itself" in notice[0]
    [event] = [e for e in box.run.events("box.warning") if not e.data["is_over"]][:1]
    assert event.data["needs"] == "stop --box box-a"


def test_what_is_still_here_after_that_is_told_and_nothing_is_tried_again(box):
    box.begins().join()
    assert [is_over for _, is_over in box.told()] == [False, True]
    [(text, _)] = box.told("box_stays")
    assert text.startswith("box-a could not stop itself and may still bill")


def test_by_its_own_key_it_stops_and_never_destroys(box, monkeypatch):
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(end_itself, "first_environment", lambda: VAST)
    monkeypatch.setattr(end_itself, "begin_own_end", lambda *words: called.append(words))
    monkeypatch.setattr(idle_end, "read_own_end", lambda path: OwnEnd("stop", "", said="200 ok"))
    one = Box(box.run, own_key="vast")
    one.begins().join()
    [(path, provider, verb, _found)] = called
    assert (provider, verb) == ("vast", "stop") and path == one.place.scratch.idle_end
    [(text, _)] = one.told("box_stays")
    assert "the answer: 200 ok" in text


def test_without_an_id_or_a_key_nothing_is_called_and_that_is_told(box, monkeypatch):
    monkeypatch.setattr(end_itself, "first_environment", dict)
    monkeypatch.setattr(end_itself, "begin_own_end", None)
    one = Box(box.run, own_key="vast")
    one.begins().join()
    [(text, _)] = one.told("box_stays")
    assert "CONTAINER_ID is not set on this box" in text


def test_a_platform_without_a_verb_of_its_own_only_tells(box):
    one = Box(box.run, from_box=None)
    one.begins().join()
    assert (
        one.told() == []
        and "It cannot stop itself, and keeps billing" in one.told("box_stays")[0][0]
    )
    [event] = box.run.events("box.warning")
    assert event.data["needs"] == "down"


def is_left_on(box: Box) -> None:
    thread = box.begins()
    time.sleep(1.0)
    assert thread.is_alive() and not box.off.exists() and box.told() == []


def test_a_result_that_is_not_there_any_more_keeps_it_on(box):
    (box.run.durable.cell("a") / "m.json").unlink()
    is_left_on(box)


def test_a_result_of_another_size_keeps_it_on(box):
    (box.run.durable.cell("a") / "m.json").write_text("")
    is_left_on(box)


def test_a_manifest_that_is_another_one_keeps_it_on(box):
    with box.run.durable.manifest("a").open("a") as file:
        file.write(" ")
    is_left_on(box)


def test_a_cell_that_failed_keeps_it_on(make_run):
    run = make_run({"a": {}, "b": {"exits": [42]}})
    assert run.finish() == 1
    one = Box(run)
    is_left_on(one)
    one.start_record().unlink()


def test_another_run_at_work_keeps_it_on(box, monkeypatch):
    monkeypatch.setattr(others, "_by_process", lambda own: {"theirs": {"cell": None}})
    is_left_on(box)


def test_somebody_at_a_terminal_keeps_it_on(box, tmp_path):
    (tmp_path / "pts" / "0").touch()
    one = Box(box.run)
    one.asked = IdleEnd(3600, from_box=f"touch {one.off}")
    assert next(idle_end._typed(3600)) == "somebody uses a terminal of the box"
    assert not list(idle_end._typed(-1))


@pytest.mark.parametrize(
    "row",
    [{"utilization_percent": 7}, {"memory_used_bytes": 2 << 30}, {"problem": "Unknown Error"}],
)
def test_a_card_in_use_keeps_it_on(box, monkeypatch, row):
    monkeypatch.setattr(idle_end._cards, "__defaults__", (lambda: [row],))
    is_left_on(box)


def test_cards_that_do_not_answer_keep_it_on(box, monkeypatch):
    monkeypatch.setattr(idle_end._cards, "__defaults__", (list,))
    monkeypatch.setattr(gpus, "has_device", lambda: True)
    is_left_on(box)


def test_an_attempt_that_still_runs_keeps_it_on(box):
    fd = lock.hold(box.place.scratch.log("a"))
    assert fd is not None
    is_left_on(box)


@pytest.mark.parametrize("want", ["stop", "drain"])
def test_a_person_calls_it_off_after_the_notice(box, monkeypatch, want):
    monkeypatch.setattr(idle_end, "NOTICE_S", 3600.0)
    thread = box.begins()
    until(box.told)
    box.run.ask(want)
    thread.join()
    assert [is_over for _, is_over in box.told()] == [False, True]
    assert box.told()[-1][0] == "box-a stays on: somebody called its shutdown off"
    assert not box.off.exists()


def test_a_chat_is_told_of_the_first_doubt_after_a_notice_and_of_each_notice(box, monkeypatch):
    monkeypatch.setattr(idle_end, "NOTICE_S", 3600.0)
    box.begins()
    for round in (1, 2):
        until(lambda n=round: len(box.told()) == 2 * n - 1)
        monkeypatch.setattr(others, "_by_process", lambda own: {"theirs": {"cell": None}})
        until(lambda n=round: len(box.told()) == 2 * n)
        monkeypatch.setattr(others, "_by_process", lambda own: {})
    assert "box-a stays on: run theirs is at work on this box" in box.told()[1][0]
    events = box.run.events("box.warning")
    assert [wanted.is_told("feishu", event) for event in events][:4] == [True, True, True, False]
    assert all(wanted.is_told(None, event) for event in events)


def test_it_goes_away_when_the_run_is_torn_down_or_an_agent_takes_the_queue(box):
    box.start_record().unlink()
    box.begins().join()
    one = Box(box.run)
    fd = lock.hold(box.run.durable.lock("q1"))
    assert fd is not None
    one.begins().join()
    assert box.told() == [] and not box.off.exists()


def test_the_ten_minutes_wait_for_a_notice_that_no_chat_has_taken(box, monkeypatch):
    away = SimpleNamespace(
        pending=lambda: 1, start=lambda: None, close=lambda s: None, wake=lambda: None
    )
    for module in (idle_end, between_agents):
        monkeypatch.setattr(module, "deliverer_of", lambda place, known: away)
    thread = box.begins()
    until(box.told)
    time.sleep(1.5)
    assert thread.is_alive() and not box.off.exists()
