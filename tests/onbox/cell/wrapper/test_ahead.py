"""The program of the next attempt beside the cell that runs; and where there is none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.files import attempt
from onbox.cell.wrapper import ahead
from onbox.cell.wrapper.ahead import MAY_WAIT, Ahead
from onbox.cell.wrapper.words import WAITS

# Each cell has a gate of its own, and says how it was started.
GATED = """\
import json, os, sys, time
from pathlib import Path

out = Path(sys.argv[2])
said = {"waits": os.environ.get("BOXCAR_WAITS"), "stdin": os.readlink("/proc/self/fd/0")}
said |= {"fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1], "cwd": os.getcwd()}
(out / "said.new").write_text(json.dumps(said))
(out / "said.new").replace(out / "said.json")
config = json.loads(Path(sys.argv[1]).read_text())
gate = Path(config["gate"] + "-" + out.parent.name)
while not gate.exists():
    time.sleep(0.01)
for name in config.get("appends", []):
    with open(name, "a") as file:
        file.write("\\n")
(out / "m.json").write_text('{"step": 1}')
"""


def waiting(run: Any) -> list[int]:
    """The programs of this run that wait for their turn, or are on their way there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = os.fsencode(run.root) in (entry / "cmdline").read_bytes()
            if is_ours and f"{WAITS}=1".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def open_gate(run: Any, cell: str) -> None:
    (run.root / f"gate-{cell}").touch()


def said(run: Any, cell: str) -> Any:
    return json.loads((run.out(cell) / "said.json").read_text())


def test_the_next_cell_is_run_by_the_program_that_waited_beside_the_one_before(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {"gate": 1}}, is_hurried=False, train=GATED, resume=None)
    agent = run.start()
    waits = until(lambda: waiting(run), "a program that waits")
    assert not run.scratch().cell("b").exists()
    assert not run.durable.claim("b").exists()
    assert run.life("b") == []
    open_gate(run, "a")
    until((run.out("b") / "said.json").exists)
    running = attempt.read_running(run.scratch().running("b"))
    assert running
    assert running.pid in waits
    assert lock.is_held(run.scratch().log("b"))
    assert said(run, "b") == said(run, "a") | {"waits": None, "stdin": "/dev/null"}
    open_gate(run, "b")
    assert agent.wait(LIMIT_S) == 0
    assert run.life("b") == ["claimed", "started", "succeeded", "synced", "verified"]
    assert waiting(run) == []


def test_an_agent_that_is_killed_leaves_no_program_behind_and_the_next_runs_the_cell(
    make_run, until
):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    until(lambda: waiting(run))
    agent.kill()
    agent.wait()
    until(lambda: not waiting(run))
    assert run.life("b") == []
    second = run.start()
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert [len(run.starts(cell)) for cell in "ab"] == [1, 1]


def test_an_agent_that_is_asked_to_drain_leaves_none(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    until(lambda: waiting(run))
    run.ask("drain")
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert waiting(run) == []
    assert run.life("b") == []


def test_a_line_that_was_dropped_meanwhile_is_not_run(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {}, "c": {}})
    agent = run.start()
    until(lambda: waiting(run))
    queue = run.durable.queue("q1")
    queue.write_text(queue.read_text().replace("configs/b", "# configs/b"))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.life("b") == []
    assert not run.scratch().cell("b").exists()
    assert run.state("c") == "verified"


def test_what_a_cell_changed_is_run_by_no_program_that_was_there_before(make_run, until):
    cells = {"a": {"gate": 1, "appends": ["train.py"]}, "b": {"gate": 1}}
    run = make_run(cells, is_hurried=False, train=GATED, resume=None)
    agent = run.start()
    waits = until(lambda: waiting(run))
    open_gate(run, "a")
    until((run.out("b") / "said.json").exists)
    running = attempt.read_running(run.scratch().running("b"))
    assert running
    assert running.pid not in waits
    open_gate(run, "b")
    assert agent.wait(LIMIT_S) == 1
    assert [run.state(cell) for cell in "ab"] == ["failed", "verified"]


def test_a_cell_whose_program_was_killed_while_it_waited_is_run_all_the_same(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    for pid in until(lambda: waiting(run)):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not waiting(run))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.life("b") == ["claimed", "started", "succeeded", "synced", "verified"]


PLAIN = {"launcher": "python", "nodes": 1, "workdir": "/code"}


@pytest.mark.parametrize(
    ("run_one", "changes", "may"),
    [
        (MAY_WAIT, {}, True),
        (MAY_WAIT, {"launcher": "torchrun"}, True),
        ("# a hook", {}, False),
        (MAY_WAIT, {"launcher": "accelerate"}, False),
        (MAY_WAIT, {"launcher": "deepspeed"}, False),
        (MAY_WAIT, {"nodes": 2}, False),
        (MAY_WAIT, {"workdir": "/cells/b/out"}, False),
    ],
)
def test_what_acts_before_its_launcher_is_started_only_with_its_cell(
    tmp_path, run_one, changes, may
):
    path = tmp_path / "run_one.sh"
    path.write_text(f"{run_one}\n")
    what: Any = SimpleNamespace(**PLAIN | changes)
    assert ahead.may_wait(path, what, Path("/code")) is may


def test_a_program_that_waits_for_other_words_is_not_let_in():
    one = Ahead()
    one.start([sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read()))"])
    assert one.let_in(["another"]) is None
    (child,) = one._given_up
    one.close()
    assert child.returncode == 0
