from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from specs import make_spec

from boxcar.shared.paths import ScratchPaths
from onbox.attempt import watch
from onbox.attempt.watch import Watch


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def watched(tmp_path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Two ranks were asked for; a look takes no time."""
    (tmp_path / "boxcar" / "run" / "cells" / "a").mkdir(parents=True)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    monkeypatch.setattr(watch, "end_soon", lambda find: ended.append(log.read_text()))
    log = tmp_path / "log"
    fd = os.open(log, os.O_WRONLY | os.O_CREAT)
    spec = make_spec(tmp_path, launcher="torchrun", ranks=2)
    yield Watch(spec, ScratchPaths(tmp_path, "run"), ("launcher", "train.py"), list, fd)
    os.close(fd)


def see(monkeypatch: pytest.MonkeyPatch, formed: int | None) -> None:
    monkeypatch.setattr(watch, "formed", lambda launcher, argv, **how: formed)


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
    assert watched.look(1) == watch.LOOK_EVERY_S
    assert watched.wrong_ranks is None


def test_fewer_ranks_than_were_asked_for_end_the_attempt_once(
    watched: Watch, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch, 1)
    watched.look(1)
    watched.look(1)
    assert watched.wrong_ranks == 1
    text = "boxcar: the launcher was asked for 2 ranks and formed 1: this attempt is ended\n"
    assert ended == [text]
