from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S, until

from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import Number
from boxcar.shared.metrics import measure
from boxcar.shared.metrics.measure import LATE
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.cell import live_metrics
from onbox.cell.live_metrics import LiveMetrics
from onbox.place import Place

METRICS = (
    Metric("loss", "log", "loss ([0-9.]+)", best="min"),
    Metric("top1", "csv", "s.csv", key="top1"),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A look is always due."""
    monkeypatch.setattr(live_metrics, "EVERY_S", 0.0)
    tier, scratch = DurablePaths(tmp_path / "tier", "r"), ScratchPaths(tmp_path / "b", "r")
    scratch.out("c").mkdir(parents=True)

    class APlan:
        metrics = METRICS

    plan: Any = APlan
    return Place(plan, Path("/releases/abc"), "training.zip", "q", "box-a", tier, scratch)


def never(what: str, text: str, cell: str) -> None:
    raise AssertionError(text)


def test_the_newest_numbers_are_known_soon_and_the_loop_waits_for_none(place: Place) -> None:
    live, log = LiveMetrics(place, never), place.scratch.log("c")
    assert live.numbers("c", 1) == {}
    log.write_text("loss 0.5\nloss 0.75\n")
    until(lambda: live.numbers("c", 1) == {"loss": 0.5})
    (place.scratch.out("c") / "s.csv").write_text("top1\n0.25\n")
    until(lambda: live.numbers("c", 1) == {"loss": 0.5, "top1": 0.25})
    assert live.numbers("c", 2) == {}, "another attempt begins with nothing"


def test_the_best_of_what_is_far_behind_by_now_is_remembered(place: Place) -> None:
    live, log = LiveMetrics(place, never), place.scratch.log("c")
    log.write_text("loss 0.125\n")
    until(lambda: live.numbers("c", 1) == {"loss": 0.125})
    with log.open("a") as file:
        file.write("x\n" * 100_000 + "loss 0.5\n")
    before = live._cell and live._cell._seen_bytes
    until(lambda: live.numbers("c", 1) and live._cell and live._cell._seen_bytes != before)
    assert live.numbers("c", 1) == {"loss": 0.125}


def test_an_expression_that_is_late_twice_is_off_with_a_warning_and_the_others_stay(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    told: list[tuple[str, str, str]] = []

    def take(metrics: list[Metric], cells: list[Any]) -> list[tuple[Number, ...]]:
        asked.append([metric.name for metric in metrics])
        late = Number("loss", None, LATE)
        return [tuple(late if m.name == "loss" else Number(m.name, 0.5) for m in metrics)]

    monkeypatch.setattr(measure, "take", take)
    live = LiveMetrics(replace(place), lambda *words: told.append(words))
    for number in range(1, 5):
        (place.scratch.out("c") / "s.csv").write_text("x" * number)
        until(lambda number=number: live.numbers("c", 1) and len(asked) == number)
    assert asked == [["loss", "top1"], ["loss", "top1"], ["top1"], ["top1"]]
    [(what, text, cell)] = told
    assert (what, cell) == ("metric_off", "c") and "loss ([0-9.]+)" in text
    assert live.numbers("c", 1) == {"top1": 0.5}


def test_without_metrics_nothing_is_looked_at(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.plan, "metrics", ())
    monkeypatch.delattr(measure, "take")
    assert LiveMetrics(place, never).numbers("c", 1) == {}


def test_of_a_real_agent_they_stand_in_its_heartbeat_and_in_what_is_verified(make_run) -> None:
    """The expression `evil` never comes to an end: neither heartbeat nor settling waits for it."""
    metrics = (
        Metric("seen", "log", "gone ([0-9]+) times"),
        Metric("evil", "log", "((?:a+)+)$"),
        Metric("step", "json", "m.json", key="step"),
    )
    prints = f"gone 3 times\n{'a' * 60}!"
    run = make_run({"a": {"prints": prints, "gate": True}}, metrics=metrics)
    agent = run.start()
    beat = run.durable.heartbeat("q1")
    until(lambda: beat.exists() and json.loads(beat.read_bytes())["progress"].get("seen") == 3)
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    said = run.events("cell.verified", cell="a")[0].data
    assert said["metrics"] == {"seen": 3, "evil": None, "step": 1, "first": 0, "starts": 1}
    assert said["metric_notes"] == {"evil": LATE}
