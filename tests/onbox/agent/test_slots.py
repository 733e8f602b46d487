"""Several cells side by side on one box: each has a stage and GPUs of its own."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from typing import Any

import pytest
import waiting

from boxcar.shared.disk import lock
from boxcar.shared.files import control, journal, manifest
from onbox.machine import devices
from onbox.machine.devices import Devices

FOUR = {"job_env": {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, "scratch": ("latest.json",)}
HELD = {"gate": True, "steps": 1}


def events(run, type: str) -> dict[str, dict[str, Any]]:
    found = journal.read_journal(run.durable.journal("q1")).events
    return {event.cell: event.data for event in found if event.type == type and event.cell}


def warnings(run) -> str:
    found = journal.read_journal(run.durable.journal("q1")).events
    return "\n".join(event.data["text"] for event in found if event.type == "box.warning")


def gpus(run, cells: str) -> dict[str, str]:
    """What each cell sees, once it has begun its first step."""
    for cell in cells:
        waiting.until(lambda cell=cell: (run.out(cell) / "progress.jsonl").exists(), cell)
    read = lambda cell: json.loads((run.out(cell) / "environment.json").read_text())  # noqa: E731
    return {cell: read(cell)["CUDA_VISIBLE_DEVICES"] for cell in cells}


def test_as_many_cells_run_as_have_gpus_each_with_its_own(make_run):
    run = make_run(dict.fromkeys("abcde", HELD), gpus_per_cell=1, **FOUR)
    agent = run.start()
    assert gpus(run, "abcd") == {"a": "0", "b": "1", "c": "2", "d": "3"}
    assert "e" not in events(run, "cell.started")
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0
    assert sorted(events(run, "cell.verified")) == list("abcde")
    started = events(run, "cell.started")["d"]
    assert (started["gpus"], started["slot"], started["share"]) == (["3"], 3, 0.25)
    trained_on = manifest.read_manifest(run.durable.manifest("d")).trained_on
    assert (trained_on.ranks, trained_on.beside, trained_on.share) == (1, 3, 0.25)


def test_a_plain_python_with_several_gpus_is_one_rank(make_run):
    run = make_run({"a": {}}, gpus_per_cell=4, nproc=None, **FOUR | {"scratch": ()})
    assert run.finish() == 0
    assert events(run, "cell.started")["a"]["nproc"] == 1
    assert manifest.read_manifest(run.durable.manifest("a")).trained_on.ranks == 1


def test_cells_that_share_what_there_is_run_side_by_side_too(make_run):
    run = make_run(dict.fromkeys("abc", HELD), slots=2, scratch=("latest.json",))
    agent = run.start()
    for cell in "ab":
        waiting.until(lambda cell=cell: (run.out(cell) / "progress.jsonl").exists())
    assert list(events(run, "cell.started")) == ["a", "b"]
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0
    assert "gpus" not in events(run, "cell.started")["b"]


def test_what_one_cell_leaves_beside_its_code_moves_no_file_of_another(make_run):
    cells = {"a": {"adds": ["mine.txt"]}, "b": {**HELD, "adds": ["yours.txt"]}}
    run = make_run(cells, slots=2, scratch=("latest.json",))
    agent = run.start()
    waiting.until(lambda: "a" in events(run, "cell.verified"))
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0
    beside = {cell: [path.name for path in run.scratch().beside(cell).iterdir()] for cell in "ab"}
    assert beside == {"a": ["mine.txt"], "b": ["yours.txt"]}


def test_an_agent_that_was_killed_finds_all_of_its_cells_and_gives_no_gpu_out_twice(make_run):
    run = make_run(dict.fromkeys("abcdef", HELD), gpus_per_cell=1, **FOUR)
    killed = run.start()
    first = gpus(run, "abcd")
    os.kill(agents_started(run)[0].data["pid"], signal.SIGKILL)
    killed.wait(waiting.LIMIT_S)
    agent = run.start()
    waiting.until(lambda: len(agents_started(run)) == 2)
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0
    assert gpus(run, "abcd") == first
    verified = events(run, "cell.verified")
    assert sorted(verified) == list("abcdef")
    assert {data["attempt"] for data in verified.values()} == {1}


def agents_started(run) -> list[Any]:
    found = journal.read_journal(run.durable.journal("q1")).events
    return [event for event in found if event.type == "agent.started"]


def test_a_cell_that_needs_more_gpus_than_are_free_lets_none_pass(make_run):
    run = make_run({"a": HELD, "b": HELD, "c": HELD}, gpus_per_cell=1, **FOUR)
    write_queue(run, "configs/a.json count 3 gpus=3", "configs/b.json count 3 gpus=2", LINE_C)
    agent = run.start()
    assert gpus(run, "a") == {"a": "0,1,2"}
    waiting.until(lambda: run.durable.heartbeat("q1").exists())
    assert list(events(run, "cell.started")) == ["a"]
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0
    assert list(events(run, "cell.started")) == ["a", "b", "c"]


def test_a_smaller_one_passes_where_the_job_says_so(make_run):
    run = make_run({"a": HELD, "b": HELD, "c": HELD}, gpus_per_cell=1, backfill=True, **FOUR)
    write_queue(run, "configs/a.json count 3 gpus=3", "configs/b.json count 3 gpus=2", LINE_C)
    agent = run.start()
    assert gpus(run, "ac") == {"a": "0,1,2", "c": "3"}
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 0


LINE_C = "configs/c.json count 3"


def write_queue(run, *lines: str) -> None:
    run.durable.queue("q1").write_text("".join(f"{line}\n" for line in lines))


def test_more_gpus_than_the_box_has_fail_that_cell_alone(make_run):
    run = make_run({"a": {}, "b": {}}, gpus_per_cell=1, **FOUR)
    write_queue(run, "configs/a.json count 3 gpus=5", "configs/b.json count 3")
    assert run.finish() == 1
    assert events(run, "cell.failed")["a"]["reason"].startswith(
        "a needs 5 GPUs, and this box has 4"
    )
    assert list(events(run, "cell.verified")) == ["b"]


def test_a_stop_lets_each_of_them_save_and_leave(make_run):
    cells = {cell: {**HELD, "on_term": 85} for cell in "abc"}
    run = make_run(cells, gpus_per_cell=1, **FOUR)
    agent = run.start()
    gpus(run, "abc")
    run.ask(control.STOP)
    assert agent.wait(waiting.LIMIT_S) == 0
    assert sorted(events(run, "cell.preempted")) == list("abc")
    assert run.durable.resume("c").exists()


def test_a_box_that_is_no_good_ends_the_queue_once_the_others_are_through(make_run):
    cells = {"a": {"exits": [43]}, "b": HELD, "c": {}, "d": {}}
    run = make_run(cells, slots=2, scratch=("latest.json",))
    agent = run.start()
    waiting.until(lambda: "Nothing new starts; b runs to the end" in warnings(run))
    run.open_gate()
    assert agent.wait(waiting.LIMIT_S) == 43
    assert list(events(run, "cell.verified")) == ["b"]
    assert "c" not in events(run, "cell.started")


def test_gpus_of_another_run_are_waited_for_and_the_driver_is_not_asked_all_the_time(make_run):
    run = make_run({"a": {"steps": 1}}, gpus_per_cell=4, **FOUR)
    locks = run.scratch().gpu_locks
    locks.mkdir(parents=True)
    held = lock.try_hold(locks / "2.lock")
    agent = run.start()
    waiting.until(lambda: run.durable.heartbeat("q1").exists())
    assert agent.poll() is None and not events(run, "cell.started")
    os.close(held)
    run.append("# somebody looks")
    assert agent.wait(waiting.LIMIT_S) == 0
    assert events(run, "cell.started")["a"]["gpus"] == ["0", "1", "2", "3"]


def test_the_driver_is_asked_only_where_as_many_are_left(tmp_path):
    asked: list[int] = []
    found = Devices(tmp_path, 1 << 30, "012", ask=lambda: asked.append(1) or ROWS)
    assert found.take_gpus(2, ("0", "1")) is None
    assert asked == []


# --- which GPUs are free


ROWS = [{"uuid": f"GPU-{n}", "memory_used_bytes": 0} for n in range(3)]


def test_a_gpu_is_given_to_one_of_all_runs_on_the_box(tmp_path):
    mine, yours = (Devices(tmp_path, 1 << 30, "012", ask=lambda: ROWS) for _ in range(2))
    held = mine.take_gpus(2, ())
    assert list(held) == ["0", "1"]
    assert yours.take_gpus(2, ()) is None
    assert yours.in_use == ("0", "1")
    assert list(yours.take_gpus(1, ())) == ["2"]
    devices.give_back(held.values())
    assert lock.is_held(tmp_path / "GPU-2.lock")
    assert list(yours.take_gpus(2, ())) == ["0", "1"]


def test_a_gpu_whose_memory_somebody_uses_is_not_free(tmp_path):
    rows = [ROWS[0] | {"memory_used_bytes": 2 << 30}, *ROWS[1:]]
    found = Devices(tmp_path, 1 << 30, "012", ask=lambda: rows)
    assert list(found.take_gpus(2, ())) == ["1", "2"]


@pytest.mark.parametrize(
    ("visible", "rows", "expected"),
    [
        pytest.param(None, ROWS, ("0", "1", "2"), id="all that the driver names"),
        pytest.param("2, 0", ROWS, ("2", "0"), id="those that a scheduler has given"),
        pytest.param("", ROWS, (), id="none"),
        pytest.param("-1", ROWS, (), id="none, as CUDA says it"),
        pytest.param(None, [{"mig": ["MIG-a", "MIG-b"]}], ("MIG-a", "MIG-b"), id="slices"),
    ],
)
def test_gpus_are_named_as_cuda_takes_them(visible, rows, expected):
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert devices.gpus_to_give_out(environ, rows) == expected


# --- a storm

STORM = """\
import json, os, sys, time
from pathlib import Path

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
used, gpu = Path(config["used"]), os.environ["CUDA_VISIBLE_DEVICES"]
(used / f"{gpu}.lock").touch(exist_ok=False)  # who shares it with another fails
time.sleep(config["sleeps_s"])
(used / f"{gpu}.lock").unlink()
(used / f"{out.parent.name}.ended").touch(exist_ok=False)  # nor is it run to its end twice
(out / "m.json").write_text(json.dumps({"step": 1}))
"""


def run_until_killed(run, after_s: float) -> None:
    """An agent that is killed so soon after it began, unless it has ended by then."""
    before = len(agents_started(run))
    agent = run.start()
    waiting.until(lambda: len(agents_started(run)) > before or agent.poll() is not None)
    time.sleep(after_s)
    if agent.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(agents_started(run)[-1].data["pid"], signal.SIGKILL)
    agent.wait(waiting.LIMIT_S)


@pytest.mark.parametrize(
    ("cells", "kills"), [pytest.param(12, 4), pytest.param(200, 300, marks=pytest.mark.faults)]
)
def test_whenever_the_agent_is_killed_each_cell_runs_once_and_shares_no_gpu(
    make_run, tmp_path, cells, kills
):
    (tmp_path / "used").mkdir()
    chance = random.Random(f"{cells} cells")
    config = {"used": str(tmp_path / "used")}
    names = {f"c{n}": config | {"sleeps_s": chance.uniform(0.05, 0.6)} for n in range(cells)}
    run = make_run(names, train=STORM, gpus_per_cell=1, resume=None, **FOUR)
    for _ in range(kills):
        run_until_killed(run, chance.uniform(0.0, 1.0))
    assert run.finish() == 0
    found = journal.read_journal(run.durable.journal("q1")).events
    verified = [event.cell for event in found if event.type == "cell.verified"]
    assert sorted(verified) == sorted(names)
    assert [event.data for event in found if event.type == "cell.failed"] == []
