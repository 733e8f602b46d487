"""A box that `up` rented stops itself when nothing moves there: reversibly, and never too early."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stand_in_providers import KEY, environment, stand_in
from waiting import until

from boxcar.shared.disk import lock
from boxcar.shared.files.own_end import read_own_end
from boxcar.shared.paths import ScratchPaths
from onbox import deadline
from onbox.after_reboot import resume
from onbox.answers import door
from onbox.machine import deadline_mark, end_itself

HOUR = 3600.0


class Night:
    """A box whose minutes pass at once: `cells` move there, at `stops` it was stopped."""

    def __init__(self, mark: Path) -> None:
        self.mark, self.now_s, self.until_s = mark, 0.0, 0.0
        self.cells: Callable[[float], dict[str, tuple[int, int]]] = lambda _now_s: {}
        self.stops: list[float] = []
        self.news: list[tuple[str, float]] = []
        mark.touch()

    def comes(self, in_s: float, *, is_cap: bool) -> None:
        self.news.append(("cap" if is_cap else "quiet", round((self.now_s + in_s) / HOUR, 2)))

    def is_off(self) -> None:
        self.news.append(("off", round(self.now_s / HOUR, 2)))

    def is_still_here(self) -> None:
        self.news.append(("here", round(self.now_s / HOUR, 2)))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s >= self.until_s:
            self.mark.unlink(missing_ok=True)

    def passes(self, hours: float, *, quiet: float = 6, most: float = 168) -> list[float]:
        """The hours at which it was stopped."""
        self.until_s = hours * HOUR
        deadline.wait(
            self.mark,
            quiet * HOUR,
            most * HOUR,
            lambda: self.cells(self.now_s),
            lambda: self.stops.append(self.now_s),
            news=self,
            now_s=lambda: self.now_s,
            sleep=self.sleep,
        )
        return [round(one / HOUR, 2) for one in self.stops]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / "deadline")


def test_a_box_that_nobody_uses_is_stopped_after_its_quiet_time(night: Night) -> None:
    assert night.passes(5.9) == []
    night.mark.touch()
    night.now_s = 0.0
    assert night.passes(6.1) == [6.0]


def test_a_training_that_writes_keeps_its_box(night: Night) -> None:
    # A line of its log every five hours; the last one at the 40th.
    night.cells = lambda now_s: {"a.log": (0, int(min(now_s, 40 * HOUR) // (5 * HOUR)))}
    assert night.passes(45.9) == []
    night.mark.touch()
    night.now_s, night.cells = 0.0, lambda now_s: {"a.log": (0, int(min(now_s, 40 * HOUR) // HOUR))}
    first, *_again = night.passes(46.5)
    assert 46.0 <= first < 46.1, "counted from the last that moved"


def test_the_hard_cap_is_not_moved_by_progress(night: Night) -> None:
    night.cells = lambda now_s: {"a.log": (0, int(now_s))}
    first, *_again = night.passes(25, most=24)
    assert first == 24.0


def test_what_is_deleted_or_cannot_be_read_is_no_progress(night: Night) -> None:
    night.cells = lambda now_s: {"a.log": (0, 1)} if now_s < HOUR else {}
    assert night.passes(6.1) == [6.0]


def test_a_provider_that_did_nothing_is_asked_again(night: Night) -> None:
    assert night.passes(6.5) == [6.0, 6.18, 6.37]


def test_ten_minutes_before_it_is_told_and_again_where_the_box_stays(night: Night) -> None:
    # It writes once more, when that was told; then never again.
    night.cells = lambda now_s: {"a.log": (0, int(now_s > 5.9 * HOUR))}
    assert night.passes(11.95) == [11.92]
    assert night.news[:3] == [("quiet", 6.0), ("off", 5.92), ("quiet", 11.92)]
    assert night.news[3] == ("here", 12.08), "the provider did nothing"


def test_of_the_hard_cap_it_is_told_as_such(night: Night) -> None:
    night.cells = lambda now_s: {"a.log": (0, int(now_s))}
    night.passes(24.2, most=24)
    assert night.news[0] == ("cap", 24.0)


def test_one_that_is_called_off_after_the_notice_is_told_off(night: Night) -> None:
    assert night.passes(5.9) == []
    assert [what for what, _hour in night.news] == ["quiet", "off"]


def test_a_deadline_that_was_called_off_stops_nothing(night: Night) -> None:
    night.mark.unlink()
    assert night.passes(100) == []


def test_all_runs_of_the_box_count_by_their_logs_and_results(tmp_path: Path) -> None:
    before = deadline.moved(tmp_path)
    for run in ("tiny", "other"):
        scratch = ScratchPaths(tmp_path, run)
        scratch.out("a").mkdir(parents=True)
        scratch.log("a").write_text("epoch 1\n")
        (scratch.out("a") / "deep").mkdir()
        (scratch.out("a") / "deep" / "last.pth").write_bytes(b"1")
    found = deadline.moved(tmp_path)
    assert before == {} and len(found) == 4
    with scratch.log("a").open("a") as log:
        log.write("epoch 2\n")
    assert deadline.moved(tmp_path) != found


def test_it_stops_by_the_boxs_own_key_and_never_destroys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(end_itself, "PAUSE_S", 0.0)
    mark = tmp_path / "boxcar" / "tiny" / "deadline"
    mark.parent.mkdir(parents=True)
    with stand_in("vastai") as server:
        box = server.stranger()
        url = environment(server)["VAST_URL"]
        own = {"CONTAINER_ID": box.id, "CONTAINER_API_KEY": KEY, "VAST_URL": url}
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        waits = threading.Thread(target=deadline.run, args=(mark, "vast", 0.05, 100.0, tmp_path))
        mark.touch()
        monkeypatch.setattr(deadline, "AGAIN_S", 0.01)
        waits.start()
        until(lambda: server.calls("stop") > 0)
        mark.unlink()
        waits.join()
        assert server.calls("end") == 0 and box.id in server.boxes
    kept = read_own_end(mark.with_name("deadline-end.json"))
    assert kept and kept.verb == "stop" and KEY not in kept.said


class Starts:
    """What was started, in the place of a process: it holds the mark until it `dies`."""

    def __init__(self) -> None:
        self.words: list[list[str]] = []
        self.environ: dict[str, str] = {}
        self.fd: int | None = None

    def start(self, words: list[str], environ: dict[str, str]) -> None:
        self.words.append(words)
        self.environ, self.fd = environ, lock.hold(Path(words[1]))

    def dies(self) -> None:
        assert self.fd is not None
        os.close(self.fd)


def ask(root: Path) -> dict[str, Any]:
    places = {"durable_dir": str(root / "tier"), "data_dir": str(root)}
    words = {"ask": "deadline", "run": "tiny", **places, "provider": "vast"}
    return door.answer(json.dumps(words | {"quiet_s": 60, "most_s": 600}).encode())


def test_one_waits_on_a_box_however_often_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"CONTAINER_ID": "28000023", "CONTAINER_API_KEY": KEY, "LD_PRELOAD": "x"}
    monkeypatch.setattr(end_itself, "first_environment", lambda: there)
    child = Starts()
    monkeypatch.setattr(end_itself, "start_child", child.start)
    assert ask(tmp_path) == {} == ask(tmp_path)
    mark = ScratchPaths(tmp_path, "tiny").deadline
    assert mark.read_text() == "vast 60 600\n"
    assert child.words == [["deadline", str(mark), "vast", "60", "600", str(tmp_path)]]
    assert child.environ.keys() == {"CONTAINER_ID", "CONTAINER_API_KEY"}
    assert KEY not in str(child.words)
    child.dies()
    assert ask(tmp_path) == {} and len(child.words) == 2
    child.dies()


def test_one_that_does_not_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"CONTAINER_ID": "28000023", "CONTAINER_API_KEY": KEY}
    monkeypatch.setattr(end_itself, "first_environment", lambda: there)
    monkeypatch.setattr(end_itself, "start_child", lambda words, environ: None)
    monkeypatch.setattr(deadline_mark, "STARTS_S", 0.1)
    assert "does not start" in ask(tmp_path)["problem"]


def test_after_a_reboot_it_lies_again_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"CONTAINER_ID": "28000023", "CONTAINER_API_KEY": KEY}
    monkeypatch.setattr(end_itself, "first_environment", lambda: there)
    child = Starts()
    monkeypatch.setattr(end_itself, "start_child", child.start)
    mark = ScratchPaths(tmp_path, "tiny").deadline
    mark.parent.mkdir(parents=True)
    assert list(resume(tmp_path)) == [] == child.words, "called off, or none was ever laid"
    mark.write_text("vast 60 600\n")
    assert list(resume(tmp_path)) == ["tiny: its deadline lies again"]
    assert child.words == [["deadline", str(mark), "vast", "60", "600", str(tmp_path)]]
    assert list(resume(tmp_path)) == [] and len(child.words) == 1
    child.dies()
    there.clear()
    assert list(resume(tmp_path)) == [
        "tiny: no deadline lies on this box: CONTAINER_ID is not set on this box"
    ]
    mark.write_text("vast\n")
    [told] = resume(tmp_path)
    assert told.startswith("tiny: no deadline lies on this box: ") and len(child.words) == 1


@pytest.mark.parametrize("missing", ["CONTAINER_ID", "CONTAINER_API_KEY"])
def test_a_box_without_a_key_of_its_own_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    there = {"CONTAINER_ID": "28000023", "CONTAINER_API_KEY": KEY}
    del there[missing]
    monkeypatch.setattr(end_itself, "first_environment", lambda: there)
    monkeypatch.setattr(end_itself, "start_child", None)
    assert missing in ask(tmp_path)["problem"]
