from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from run_on_disk import agent_started, make_run, queue_done
from waiting import LIMIT_S

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs import watch
from boxcar.shared.errors import TemporaryError


def test_who_leaves_hangs_up_on_a_box_that_hangs_and_does_not_call_it_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, closed = make_run(tmp_path), threading.Event()
    monkeypatch.setattr(watch, "_FAREWELL_S", 0.05)
    monkeypatch.setattr(LocalSite, "close", lambda boxes: closed.set())

    def looks(is_to_end: Callable[[float], bool]) -> Iterator[RunView]:
        assert closed.wait(LIMIT_S)
        yield run.look()

    feed = watch._Feed(run.site, looks, lambda: None, watch._Said())
    feed.close()
    assert closed.is_set() and feed.view is None


def test_a_run_that_has_ended_is_looked_at_now_and_then_until_the_person_leaves(
    tmp_path: Path,
) -> None:
    run, pauses = make_run(tmp_path, {"q1": ["a.yaml recon 3"]}), list[float]()
    run.say("q1", agent_started(), queue_done())

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 3

    views = list(watch.looks_without_end(run.site, 2.0, pause))
    assert len(views) == 3 and pauses == [watch.REST_S] * 3


def test_a_look_that_fails_costs_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, pauses = make_run(tmp_path), list[float]()
    tries = iter([None, TemporaryError("box-a: ask later"), None])

    def looks(site: object, interval_s: object, pause: object) -> Iterator[RunView]:
        error = next(tries)
        if error:
            raise error
        yield run.look()

    monkeypatch.setattr(watch, "looks", looks)
    views = watch.looks_without_end(run.site, 2.0, pauses.append)
    assert [next(views).run, next(views).run] == ["demo", "demo"]
    assert "not refreshed: box-a: ask later" in capsys.readouterr().err
    assert pauses == [watch.REST_S, 0.0, 2.0]


def test_a_first_look_that_fails_is_the_verbs_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks(site: object, interval_s: object, pause: object) -> Iterator[RunView]:
        raise TemporaryError("box-a: ask later")

    monkeypatch.setattr(watch, "looks", looks)
    with pytest.raises(TemporaryError, match="ask later"):
        next(watch.looks_without_end(make_run(tmp_path).site, 2.0, lambda seconds: None))
