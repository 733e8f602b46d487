from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from waiting import LIMIT_S

from onbox.checkpoint import live_checkpoint
from onbox.checkpoint.live_checkpoint import Mirroring

SOON_S = 0.01


class Slow:
    """A mirror whose copy has begun and does not end before it may go on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.began, self.may_go_on = threading.Event(), threading.Event()
        self.copies: list[str] = []
        self.has_newer = False
        self._error = error

    @property
    def due_in_s(self) -> float:
        return 0.0 if not self.began.is_set() else 10 * LIMIT_S

    def tick(self, on_chunk: Callable[[int], None]) -> None:
        self.began.set()
        assert self.may_go_on.wait(LIMIT_S)
        on_chunk(1)
        if self._error:
            raise self._error
        self.copies.append("due")

    def is_behind(self) -> bool:
        return self.has_newer

    def flush(self, on_chunk: Callable[[int], None]) -> None:
        on_chunk(1)
        self.copies.append("newest")


@pytest.fixture
def slow() -> Slow:
    return Slow()


def begun(
    slow: Slow, failed: list[Exception] | None = None, bytes_per_s: float | None = None
) -> Mirroring:
    fail = (failed if failed is not None else []).append
    live = Mirroring(slow, fail, bytes_per_s)  # type: ignore[arg-type]
    assert slow.began.wait(LIMIT_S)
    return live


def test_a_cell_that_has_succeeded_does_not_wait_for_the_copy_which_is_given_up(slow):
    failed: list[Exception] = []
    live = begun(slow, failed)
    live.give_up()  # returns, although the copy is under way
    slow.may_go_on.set()
    live.wait()
    assert (slow.copies, failed) == ([], [])


def test_whoever_removes_the_mirror_waits_until_nothing_is_written_there(slow):
    live = begun(slow)
    live.give_up()
    waits = threading.Thread(target=live.wait, daemon=True)
    waits.start()
    waits.join(SOON_S)
    assert waits.is_alive()
    slow.may_go_on.set()
    waits.join(LIMIT_S)
    assert not waits.is_alive()


def test_of_a_cell_that_failed_the_copy_under_way_is_the_last_and_the_heartbeat_goes_on(slow):
    live, ticks = begun(slow), []

    def tick() -> None:
        ticks.append(1)
        slow.may_go_on.set()

    live.finish(tick, SOON_S)
    assert slow.copies == ["due"]
    assert ticks


def test_at_a_stop_the_newest_checkpoint_follows_the_copy_under_way(slow):
    live = begun(slow)
    live.flush(slow.may_go_on.set, SOON_S)
    live.finish(lambda: None, SOON_S)
    assert slow.copies == ["due", "newest"]


def test_a_copy_that_cannot_be_made_is_told_and_costs_nothing_else():
    failed: list[Exception] = []
    slow = Slow(OSError(5, "Input/output error"))
    slow.may_go_on.set()
    live = begun(slow, failed)
    live.flush(lambda: None, SOON_S)
    live.finish(lambda: None, SOON_S)
    assert [str(error) for error in failed] == ["[Errno 5] Input/output error"]
    assert slow.copies == ["newest"]


def test_at_a_stop_the_copy_of_an_older_checkpoint_is_dropped_for_the_newest(slow):
    live = begun(slow)
    slow.has_newer = True
    assert live.flush(slow.may_go_on.set, SOON_S)
    assert slow.copies == ["newest"]


def test_what_does_not_fit_is_given_up_when_the_box_may_be_gone(slow):
    failed: list[Exception] = []
    live = begun(slow, failed)
    assert not live.flush(lambda: None, SOON_S, until=0.0)
    assert live.was_late
    slow.may_go_on.set()
    live.wait()
    assert (slow.copies, failed) == ([], [])


def test_at_a_stop_no_copy_keeps_to_a_pace(slow):
    live = begun(slow, bytes_per_s=1e-6)  # its one byte takes ten days
    slow.may_go_on.set()
    time.sleep(SOON_S)
    assert slow.copies == []
    assert live.flush(lambda: None, SOON_S)
    assert slow.copies == ["due", "newest"]


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a mirror's thread was told, without what it already was."""
    told = ["usual"]
    for name, word in (("give_way", "gives way"), ("be_usual", "usual")):
        say = lambda word=word: word != told[-1] and told.append(word)  # noqa: E731
        monkeypatch.setattr(live_checkpoint.io_class, name, say)
    return told


def test_a_copy_beside_a_training_gives_way_to_all_who_wait_for_the_disk(slow, classes):
    live = begun(slow)
    assert classes == ["usual", "gives way"]
    slow.may_go_on.set()
    live.finish(lambda: None, SOON_S)
    assert classes == ["usual", "gives way", "usual"]


def test_a_copy_that_is_waited_for_gives_way_no_more(slow, classes):
    live = begun(slow)
    at_its_next_block: list[str] = []
    slow.copies = SimpleNamespace(append=lambda _: at_its_next_block.append(classes[-1]))
    live.finish(slow.may_go_on.set, SOON_S)
    assert at_its_next_block == ["usual"]


def test_a_disk_that_is_never_idle_keeps_no_checkpoint_from_the_tier(slow, classes, monkeypatch):
    monkeypatch.setattr(live_checkpoint, "GIVES_WAY_S", -1.0)
    at_its_next_block: list[str] = []
    slow.copies = SimpleNamespace(append=lambda _: at_its_next_block.append(classes[-1]))
    slow.may_go_on.set()
    live = begun(slow)
    live.finish(lambda: None, SOON_S)
    assert at_its_next_block == ["usual"]


def test_a_copy_beside_a_training_takes_no_more_than_the_profile_gives_it():
    assert live_checkpoint.ahead_s(100, 0.0, 100.0) == 1.0
    assert live_checkpoint.ahead_s(200, 3.0, 100.0) == 0.0
    assert live_checkpoint.ahead_s(500, 3.0, 100.0) == 2.0
    assert live_checkpoint.ahead_s(500, 3.0, None) == 0.0
