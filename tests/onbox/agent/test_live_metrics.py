from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S, until

from boxcar.shared.files.heartbeat import Copying
from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import Number
from boxcar.shared.metrics import measure
from boxcar.shared.metrics.measure import LATE
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent import live_metrics
from onbox.agent.live_metrics import LiveMetrics, LiveNumbers
from onbox.agent.settler import CopySoFar
from onbox.machine.place import Place

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


def with_metrics(place: Place, metrics: tuple[Metric, ...]) -> Place:
    plan: Any = type("APlan", (), {"metrics": metrics})
    return replace(place, plan=plan)


def never(what: str, text: str, cell: str) -> None:
    raise AssertionError(text)


def test_the_newest_numbers_are_known_soon_and_the_loop_waits_for_none(place):
    live, log = LiveMetrics(place, never), place.scratch.log("c")
    assert live.numbers("c", 1) == LiveNumbers()
    log.write_text("loss 0.5\nloss 0.75\n")
    until(lambda: live.numbers("c", 1) == LiveNumbers({"loss": 0.75}, {"loss": 0.5}))
    (place.scratch.out("c") / "s.csv").write_text("top1\n0.25\n")
    until(lambda: live.numbers("c", 1).last == {"loss": 0.75, "top1": 0.25})
    assert live.numbers("c", 1).best == {"loss": 0.5}
    assert live.numbers("c", 2) == LiveNumbers(), "another attempt begins with nothing"


def test_a_training_that_gets_worse_is_seen_to_and_its_best_is_remembered(place):
    live, log = LiveMetrics(place, never), place.scratch.log("c")
    log.write_text("loss 0.125\n")
    until(lambda: live.numbers("c", 1).last == {"loss": 0.125})
    with log.open("a") as file:
        file.write("loss 0.0625\n" + "x\n" * 100_000 + "loss 0.5\n")
    until(lambda: live.numbers("c", 1) == LiveNumbers({"loss": 0.5}, {"loss": 0.0625}))


def test_a_loss_that_became_nan_is_no_older_number(place):
    metrics = (Metric("loss", "log", "loss (\\S+)", best="min"), Metric("n", "json", "n.json", "n"))
    live, log = LiveMetrics(with_metrics(place, metrics), never), place.scratch.log("c")
    log.write_text("loss 0.5\n")
    until(lambda: live.numbers("c", 1).last == {"loss": 0.5})
    with log.open("a") as file:
        file.write("loss nan\n")
    until(lambda: live.numbers("c", 1) == LiveNumbers({"loss": None}, {"loss": 0.5}))


def test_half_a_number_at_the_end_of_a_log_that_grows_is_no_number_yet(place):
    """Whoever prints through a buffer writes 4096 bytes at a time."""
    live, log = LiveMetrics(place, never), place.scratch.log("c")
    log.write_text("loss 0.5\nloss 0.0")
    until(lambda: live.numbers("c", 1) == LiveNumbers({"loss": 0.5}, {"loss": 0.5}))
    with log.open("a") as file:
        file.write("625\n")
    until(lambda: live.numbers("c", 1) == LiveNumbers({"loss": 0.0625}, {"loss": 0.0625}))


def test_an_expression_that_is_late_twice_is_off_with_a_warning_and_the_others_stay(
    place, monkeypatch
):
    asked: list[list[str]] = []
    told: list[tuple[str, str, str]] = []

    def take(metrics: list[Metric], cells: list[Any]) -> list[tuple[Number, ...]]:
        asked.append([metric.name for metric in metrics])
        late = Number("loss", None, LATE)
        return [tuple(late if m.name == "loss" else Number(m.name, 0.5) for m in metrics)]

    first = METRICS[0]
    place = with_metrics(place, (replace(first, best=None), METRICS[1]))

    monkeypatch.setattr(measure, "take_numbers", take)
    live = LiveMetrics(replace(place), lambda *words: told.append(words))
    for number in range(1, 5):
        (place.scratch.out("c") / "s.csv").write_text("x" * number)
        until(lambda number=number: (live.numbers("c", 1), len(asked) == number)[1])
    assert asked == [["loss", "top1"], ["loss", "top1"], ["top1"], ["top1"]]
    [(what, text, cell)] = told
    assert (what, cell) == ("metric_off", "c") and "loss ([0-9.]+)" in text
    assert live.numbers("c", 1) == LiveNumbers({"top1": 0.5})


def test_without_metrics_nothing_is_looked_at(place, monkeypatch):
    monkeypatch.setattr(place.plan, "metrics", ())
    monkeypatch.delattr(measure, "take_numbers")
    assert LiveMetrics(place, never).numbers("c", 1) == LiveNumbers()


def test_of_a_real_agent_they_stand_in_its_heartbeat_and_in_what_is_verified(make_run):
    """The expression `evil` never comes to an end: neither heartbeat nor settling waits for it."""
    metrics = (
        Metric("seen", "log", "gone ([0-9]+) times"),
        Metric("least", "log", "gone ([0-9]+) times", best="min"),
        Metric("evil", "log", "((?:a+)+)$"),
        Metric("step", "json", "m.json", key="step"),
    )
    prints = f"gone 3 times\n{'a' * 60}!"
    run = make_run({"a": {"prints": prints, "gate": True}}, metrics=metrics)
    agent = run.start()
    beat = run.durable.heartbeat("q1")
    until(lambda: beat.exists() and json.loads(beat.read_bytes())["progress"].get("seen") == 3)
    assert json.loads(beat.read_bytes())["best"] == {"least": 3}
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    said = run.events("cell.verified", cell="a")[0].data
    assert said["metrics"] == {
        "seen": 3,
        "least": 3,
        "evil": None,
        "step": 1,
        "first": 0,
        "starts": 1,
    }
    assert said["metric_notes"] == {"evil": LATE}


def test_each_byte_counts_when_it_is_written_and_when_it_is_read_back():
    one = CopySoFar()
    assert one.now is None
    on_chunk = one.begin("a", 100)
    on_chunk(60)
    assert one.now
    assert one.now == Copying("a", one.now.since, 60, 200)
    on_chunk(40)
    on_chunk(100)
    assert one.now.done_bytes == one.now.total_bytes == 200
    one.end()
    assert one.now is None


def test_of_a_file_that_grows_meanwhile_no_more_is_done_than_there_is():
    one = CopySoFar()
    one.begin("a", 10)(50)
    assert one.now
    assert one.now.done_bytes == 20
