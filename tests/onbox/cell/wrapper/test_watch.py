from __future__ import annotations

import time
from pathlib import Path

import pytest

from onbox.cell import processes, world
from onbox.cell.wrapper.places import Scratch
from onbox.cell.wrapper.watch import Watch


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def watched(tmp_path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Two ranks were asked for; a look takes no time."""
    (tmp_path / "boxcar" / "run" / "cells" / "a").mkdir(parents=True)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    scratch = Scratch(str(tmp_path), "run")
    return Watch(scratch, "a", 1, argv=("launcher", "train.py"), ranks=2, end=ended.append)


def see(monkeypatch: pytest.MonkeyPatch, formed: int | None) -> None:
    monkeypatch.setattr(world, "formed", lambda launcher, argv, **how: formed)


def test_until_a_rank_is_seen_no_script_is_short_enough_to_come_and_go_between_two_looks(
    watched: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked each second, and a script of one second with one rank of two was verified."""
    interpreter_s = 0.05  # to start one takes as long
    see(monkeypatch, None)
    assert watched.look(1) < interpreter_s
    assert watched.look(1) < interpreter_s
    see(monkeypatch, 2)
    watched.look(1)
    assert watched.look(1) == processes.LOOK_EVERY_S
    assert watched.wrong_ranks is None


def test_fewer_ranks_than_were_asked_for_end_the_attempt_once(
    watched: Watch, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch, 1)
    watched.look(1)
    watched.look(1)
    assert watched.wrong_ranks == 1
    assert ended == ["the launcher was asked for 2 ranks and formed 1"]
