"""A cell that stands still, and a number that is none any more: told, or ended by policy."""

from __future__ import annotations

import json
import shutil

import pytest

from boxcar.shared.files.plan import LOG, Metric

# It makes steps for long enough that the run knows what is usual, and then waits for ever.
HANGS = """
import json, pathlib, signal, sys, time
out = pathlib.Path(sys.argv[2])
config = json.loads(pathlib.Path(sys.argv[1]).read_text())
starts = out / "starts"
with starts.open("a") as file:
    file.write("x")
first = len(starts.read_text()) == 1
signal.signal(signal.SIGTERM, signal.SIG_IGN)


def wait_for_what_never_comes():
    while True:
        time.sleep(1000)


for step in range(40):
    with (out / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"step": step + 1}) + "\\n")
    print("loss", "nan" if step == config.get("nan_at") else 0.5, flush=True)
    time.sleep(0.1)
    if step == 30 and first and config.get("hangs"):
        wait_for_what_never_comes()
if "nan_at" in config:
    wait_for_what_never_comes()
(out / "m.json").write_text('{"step": 1}')
"""
HURRIED = {"stall_floor_s": 2.0, "is_stubborn": True, "train": HANGS}


def stacks(run, number: int = 1) -> str:
    return (run.durable.black_box("a") / f"attempt-{number}-stacks.txt").read_text()


def test_one_that_stands_still_is_told_and_left_alone(make_run):
    run = make_run({"a": {"hangs": True}}, **HURRIED)
    agent = run.start()
    warning = run.wait_for_warning("cell_stalled")
    assert "a has made no progress for 1m;" in warning.data["text"]
    assert "It was left alone" in warning.data["text"]
    assert (warning.data["needs"], warning.data["is_over"]) == ("explain --cell a", False)
    run.wait_for_looks()
    assert agent.poll() is None and not run.events("cell.retried")
    said = stacks(run)
    assert "'python" in said and "state S" in said
    kept = run.durable.black_box("a") / "attempt-1-gauges.jsonl"
    assert json.loads(kept.read_text().splitlines()[0])["scratch_free_bytes"] > 0


def test_by_policy_it_is_ended_with_its_stacks_and_resumed(make_run):
    run = make_run({"a": {"hangs": True}}, ends_stalled=True, **HURRIED)
    assert run.finish() == 0
    assert run.life("a")[:4] == ["claimed", "started", "retried", "started"]
    (retried,) = run.events("cell.retried")
    assert retried.data["failure"] == "STALLED" and retried.data["class"] == "RESUME_SAME"
    assert "is ended and resumed (when_stalled: end)" in retried.data["reason"]
    assert run.state("a") == "verified"
    log = (run.durable.black_box("a") / "attempt-1-log.txt").read_text()
    assert "Fatal Python error: Aborted" in log and "wait_for_what_never_comes" in log


def test_an_agent_that_comes_after_ends_what_the_one_before_had_said(make_run):
    run = make_run({"a": {"hangs": True}}, ends_stalled=True, abort_grace_s=5.0, **HURRIED)
    first = run.start()
    run.wait_for_warning("cell_stalled")
    first.kill()
    first.wait()
    assert run.finish() == 0
    assert [event.data["failure"] for event in run.events("cell.retried")] == ["STALLED"]
    assert run.state("a") == "verified"


@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not on PATH")
def test_where_py_spy_may_trace_the_stacks_are_its(make_run):
    run = make_run({"a": {"hangs": True}}, **HURRIED)
    run.start()
    warning = run.wait_for_warning("cell_stalled")
    assert "The stacks of 1 rank are in gauges/stalled/a." in warning.data["text"]
    assert "wait_for_what_never_comes (train.py:" in stacks(run)


LOSS = Metric("loss", LOG, r"loss (\S+)")


def test_a_number_that_becomes_nan_ends_the_cell_where_the_job_says_so(make_run):
    cells = {"a": {"nan_at": 39}, "b": {}}
    run = make_run(cells, ends_at_nan=True, metrics=(LOSS,), **HURRIED)
    assert run.finish() == 1
    (failed,) = run.events("cell.failed")
    assert (failed.data["failure"], failed.data["is_final"]) == ("NAN-METRIC", True)
    assert "a: loss is not a number any more; attempt 1 is ended" in failed.data["reason"]
    assert run.state("b") == "verified"


def test_else_it_goes_on(make_run):
    run = make_run({"a": {"nan_at": 39}}, metrics=(LOSS,), **HURRIED)
    run.start()
    run.wait_for_warning("cell_stalled")
    assert not run.warnings("metric_nan") and not run.events("cell.failed")
