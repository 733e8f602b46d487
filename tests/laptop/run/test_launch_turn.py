"""Two terminals that launch one run at once: one after the other sends and starts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import waiting
from run_on_disk import held

from boxcar.laptop.run import moves
from boxcar.shared.errors import Message, TemporaryError
from boxcar.shared.paths import ResultPaths


def results_in(root: Path) -> ResultPaths:
    return ResultPaths(root / "results", "tiny")


def test_the_second_waits_until_the_first_has_ended_and_says_so(tmp_path: Path) -> None:
    results, told = results_in(tmp_path), list[str | Message]()
    is_second_in = threading.Event()

    def second() -> None:
        with moves.take_turn(results, told.append):
            is_second_in.set()

    with moves.take_turn(results, told.append):
        thread = threading.Thread(target=second)
        thread.start()
        waiting.until(lambda: told, "the second has said nothing")
        assert not is_second_in.is_set()
    thread.join(waiting.LIMIT_S)
    assert is_second_in.is_set()
    assert [str(one) for one in told] == [
        "another launch of this run is in progress; this one continues when that has started "
        "its queues"
    ]


def test_a_launch_that_was_killed_holds_up_nobody(tmp_path: Path) -> None:
    results, told = results_in(tmp_path), list[str | Message]()
    with held(results.root / moves.TURN_FILE) as first:
        first.kill()
        first.wait(waiting.LIMIT_S)
        with moves.take_turn(results, told.append):
            pass
    assert not told


def test_one_that_never_ends_is_told_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "WAIT_S", 0.0)
    results = results_in(tmp_path)
    with (
        held(results.root / moves.TURN_FILE),
        pytest.raises(TemporaryError) as refused,
        moves.take_turn(results, lambda text: None),
    ):
        raise AssertionError("not reached")
    assert str(refused.value).endswith("See what it has started: invoke status")
