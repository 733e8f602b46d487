from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.answers import door, wait


class Box:
    """A run's folders on a box, and the questions about it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tier, self.scratch = DurablePaths(root / "tier", "tiny"), ScratchPaths(root, "tiny")
        for folder in self.tier.folders():
            folder.mkdir(parents=True)
        self.tier.journal("q1").write_text("first\n")

    def ask(self, name: str, **more: Any) -> dict[str, Any]:
        run = {"run": "tiny", "durable_dir": str(self.root / "tier"), "data_dir": str(self.root)}
        told = door.answer(json.dumps({"ask": name, "queues": ["q1"], **run, **more}).encode())
        assert "error" not in told, told
        return told

    def mark(self) -> str:
        return str(self.ask("report", everything=True, have={})["mark"])

    def has_news(self, mark: str, most_s: int = 0) -> bool:
        return bool(self.ask("wait", mark=mark, most_s=most_s)["has_news"])

    def begin_log(self, text: str) -> None:
        self.scratch.log("a").parent.mkdir(parents=True, exist_ok=True)
        self.scratch.log("a").write_text(text)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def _grow(box: Box) -> None:
    with box.tier.journal("q1").open("a") as file:
        file.write("more\n")


def _add_a_line(box: Box) -> None:
    (box.tier.root / "queues" / "q1.txt").write_text("a.yaml recon 1\n")


def _unmount(box: Box) -> None:
    box.tier.root.rename(box.root / "away")


@pytest.mark.parametrize("change", [_grow, _add_a_line, _unmount])
def test_what_a_report_would_tell_anew_is_news(box: Box, change: Callable[[Box], None]) -> None:
    mark = box.mark()
    assert not box.has_news(mark)
    change(box)
    assert box.has_news(mark)
    assert not box.has_news(box.mark())


def test_an_agent_and_an_attempt_that_begin_or_end_are_news_and_so_is_a_first_word(
    box: Box,
) -> None:
    box.begin_log("")
    marks = [box.mark()]
    agent = lock.try_hold(box.tier.lock("q1"))
    marks.append(box.mark())
    attempt = lock.try_hold(box.scratch.log("a"))
    assert agent is not None and attempt is not None
    marks.append(box.mark())
    box.begin_log("begun\n")
    marks.append(box.mark())
    assert len(set(marks)) == 4
    os.close(attempt)
    os.close(agent)
    assert box.mark() == marks[0]


def test_a_heartbeat_is_no_news(box: Box) -> None:
    mark = box.mark()
    box.tier.heartbeat("q1").write_text("{}")
    assert not box.has_news(mark)


def test_what_changes_while_the_report_is_made_is_news(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onbox.answers import report

    look = report._agents
    monkeypatch.setattr(report, "_agents", lambda *of: _grow(box) or look(*of))
    mark = box.mark()
    assert box.has_news(mark)


def test_who_waits_is_told_when_it_comes(box: Box) -> None:
    mark = box.mark()
    threading.Timer(0.2, _grow, [box]).start()
    assert box.has_news(mark, 60)


def test_who_has_hung_up_leaves_no_process(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(wait, "_STDERR", writer)
    monkeypatch.setattr(wait, "MOST_S", 10 * LIMIT_S)
    threading.Timer(0.2, os.close, [reader]).start()
    assert not box.has_news(box.mark(), 100_000)
    os.close(writer)


def read_log(box: Box, offset: int, wait_s: int) -> dict[str, Any]:
    return box.ask("log", cell="a", offset=offset, lines=0, most_bytes=99, wait_s=wait_s)


def test_a_log_that_somebody_writes_is_waited_for(box: Box) -> None:
    box.begin_log("one\n")
    with box.scratch.log("a").open("a") as file:
        assert lock.try_lock(file.fileno())
        threading.Timer(0.2, lambda: (file.write("two\n"), file.flush())).start()
        assert read_log(box, 4, 60)["offset"] == 8
        assert read_log(box, 0, 60)["offset"] == 8, "there is something already"
        assert read_log(box, 8, 0)["data"] == ""


def test_a_log_that_nobody_writes_is_not_waited_for(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "_has_hung_up", lambda within_s: pytest.fail("it waits"))
    box.begin_log("one\n")
    assert read_log(box, 4, 60)["data"] == ""
