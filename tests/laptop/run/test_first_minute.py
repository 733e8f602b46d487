from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import (
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    from_now,
    held,
    queue_done,
)

from boxcar.laptop.common import show
from boxcar.laptop.run import first_minute as module
from boxcar.laptop.run.first_minute import Started, probe
from boxcar.shared.disk import atomic
from boxcar.shared.state import Session

LONG_AGO_S = 100.0


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    made = make_far_run(tmp_path, monkeypatch)
    made.site.tick_s = 0.01
    monkeypatch.setattr(module, "PROBE_S", 5.0)
    monkeypatch.setattr(module, "MOST_BETWEEN_LOOKS_S", 0.05)
    return made


def write_log(run: FarRun, path: Path, text: str) -> None:
    atomic.make_folder(path.parent)
    path.write_text(text)


def looked(run: FarRun, *, before: Session | None = None, ago_s: float = 0.0) -> list[str]:
    started = [Started("queue_1", "box-a", before, time.monotonic() - ago_s)]
    return [str(problem) for problem in probe(run.site, started, show.say)]


def session_of(run: FarRun) -> Session:
    session = run.agents.look().queue("queue_1").session
    assert session
    return session


def test_an_agent_that_runs_its_first_cell_has_shown_it(
    run: FarRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    write_log(run, run.agents.project.scratch("box-a").log("a"), "=== attempt 1\n")
    with held(run.agents.site.tier.lock("queue_1")):
        assert looked(run) == []
    assert "queue_1: running a on box-a" in capsys.readouterr().err


def test_a_cell_that_has_logged_nothing_has_shown_nothing(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    with held(run.agents.site.tier.lock("queue_1")):
        (problem,) = looked(run)
    # It may have a reason to wait, which the status says.
    assert problem.startswith("queue_1: its agent runs, but started no cell within")
    assert problem.endswith("invoke status")


def test_an_agent_that_died_at_once_shows_the_end_of_its_log(run: FarRun) -> None:
    lines = "".join(f"line {number}\n" for number in range(100))
    log = run.agents.project.scratch("box-a").agent_log("queue_1")
    write_log(run, log, f"{lines}python3: no such file\n")
    (problem,) = looked(run, ago_s=LONG_AGO_S)
    assert "queue_1: its agent on box-a has ended. The end of its log there:" in problem
    assert problem.endswith("line 99\npython3: no such file")
    assert "line 9\n" not in problem


def test_before_its_first_word_it_is_given_time(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    assert "did not report" in looked(run)[0]


def test_the_session_of_the_agent_before_is_not_taken_for_the_new_ones(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    run.agents.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    before = session_of(run)
    assert "did not report" in looked(run, before=before)[0]
    assert "has ended" in looked(run, before=before, ago_s=LONG_AGO_S)[0]
    run.agents.say("queue_1", agent_started(pid=8), queue_done())
    assert looked(run, before=before) == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([cell_verified("a"), queue_done()], []),
        ([cell_failed("a"), queue_done()], ["done, with failed cells (a): invoke status"]),
        ([("queue.stopped", {"reason": "the disk is full"})], ["its agent on box-a has ended"]),
        ([cell_started("a")], ["its agent on box-a has ended"]),
    ],
)
def test_an_agent_that_has_ended_has_its_reasons(
    run: FarRun, words: Any, wanted: list[str]
) -> None:
    run.agents.say("queue_1", agent_started(), *words)
    problems = looked(run)
    assert len(problems) == len(wanted)
    assert all(text in problem for text, problem in zip(wanted, problems, strict=True))


def test_an_agent_that_waits_for_lines_works(tmp_path: Path, run: FarRun) -> None:
    run.agents.say("queue_1", agent_started())
    with held(run.agents.site.tier.lock("queue_1")):
        object.__setattr__(run.project.plan, "linger_s", 600)
        assert looked(run) == []


def test_a_link_that_breaks_off_is_waited_for(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    write_log(run, run.agents.project.scratch("box-a").log("a"), "=== attempt 1\n")
    broken: list[str] = []

    def break_once(box: str, told: dict[str, Any]) -> None:
        if "is_held" in told and not broken:
            broken.append(box)
            told.clear()
            told["error"] = {"kind": "TemporaryError", "text": "the connection was lost"}

    run.world.change = break_once
    with held(run.agents.site.tier.lock("queue_1")):
        assert looked(run) == []
    assert broken == ["box-a"]


def test_a_box_that_falls_silent_is_not_said_to_have_lost_its_agent(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    run.world.cut.add("box-a")
    (problem,) = looked(run, ago_s=LONG_AGO_S)
    assert "did not report" in problem


def test_a_box_that_cannot_ask_the_lock_is_not_said_to_have_lost_its_agent(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    run.agents.say("queue_2", agent_started(), queue_done())
    run.world.tiers["box-a"] = run.agents.project.root / "not mounted"
    (problem,) = looked(run, ago_s=LONG_AGO_S)
    assert "did not report" in problem


def test_each_agent_is_waited_for(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    log = run.agents.project.scratch("box-b").agent_log("queue_2")
    write_log(run, log, "broken\n")
    long_ago_s = time.monotonic() - LONG_AGO_S
    (problem,) = probe(
        run.site,
        [
            Started("queue_1", "box-a", None, long_ago_s),
            Started("queue_2", "box-b", None, long_ago_s),
        ],
        show.say,
    )
    assert str(problem).startswith("queue_2: ") and str(problem).endswith("broken")
    assert probe(run.site, [], show.say) == []


def test_a_cell_that_an_earlier_agent_left_running_is_no_sign_of_the_new_one(
    run: FarRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.3)
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    write_log(run, run.agents.project.scratch("box-a").log("a"), "=== attempt 1\n")
    before = session_of(run)
    time.sleep(0.01)  # a journal counts milliseconds
    run.agents.say("queue_1", agent_started())
    with held(run.agents.site.tier.lock("queue_1")):
        assert "started no cell" in looked(run, before=before)[0]
    assert "runs a" not in capsys.readouterr().err


def test_a_queue_that_skipped_lines_is_told_with_the_reason(run: FarRun) -> None:
    skipped = {"verified": 0, "failed": 0, "reason": "line 2 cannot be read"}
    run.agents.say("queue_1", agent_started(), ("queue.done", skipped))
    assert "some lines were not run: line 2 cannot be read" in looked(run)[0]


def test_an_agent_whose_cell_waits_for_another_one_is_well(
    run: FarRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "PROBE_S", 0.1)
    waits = {"what": "waits_for_cell", "text": "a waits for c of queue_2", "cell": "a"}
    run.agents.say("queue_1", agent_started(), ("box.warning", waits))
    with held(run.agents.site.tier.lock("queue_1")):
        assert looked(run) == []
        assert "queue_1: a waits for c of queue_2" in capsys.readouterr().err
        run.agents.beat("queue_1", from_now(0), phase="idle")
        assert run.agents.condition("queue_1").sentence == "a waits for c of queue_2"
        run.agents.say("queue_1", cell_started("a"), cell_failed("a"))
        assert looked(run) != [], "it waits no longer"
