"""The program of the next attempt beside the cell that runs; and where there is none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gated import GATED, open_gate, said
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.files import attempt
from onbox.agent.agent import SHORT_S
from onbox.cell import leftovers
from onbox.cell.wrapper import ahead
from onbox.cell.wrapper import waiting as waiting_program
from onbox.cell.wrapper.ahead import MAY_WAIT, Ahead
from onbox.cell.wrapper.words import LOADS_AFTER_S, WAITS
from onbox.machine import cgroup, process

NOT_AT_ONCE_S = SHORT_S + 0.05


def waiting(run: Any) -> list[int]:
    """The programs of this run that wait for their turn, or are on their way there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = os.fsencode(run.root) in (entry / "cmdline").read_bytes()
            if is_ours and f"\0{WAITS}=".encode() in b"\0" + (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def ways(run: Any) -> set[str]:
    """After how long each loads torch, also one that was let in; '' where it does not."""
    return {process.environment(pid).get(LOADS_AFTER_S, "") for pid in waiting(run)}


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


def test_a_cell_that_was_put_before_it_meanwhile_runs_as_itself(make_run, until):
    run = make_run(
        {name: {"gate": 1} for name in "abc"}, is_hurried=False, train=GATED, resume=None
    )
    agent = run.start()
    until(lambda: waiting(run))
    queue = run.durable.queue("q1")
    a, b, c = queue.read_text().splitlines(keepends=True)
    queue.write_text(a + c + b)
    for cell in "acb":
        open_gate(run, cell)
    assert agent.wait(LIMIT_S) == 0
    assert said(run, "c") == said(run, "a") | {"waits": None}
    assert [e.cell for e in run.events("cell.started")] == ["a", "c", "b"]


def test_secrets_that_were_changed_meanwhile_are_those_that_it_has(make_run, until, tmp_path):
    credentials = tmp_path / "box-a.credentials.json"

    def tell(value: str) -> None:
        credentials.touch(mode=0o600)
        credentials.write_text(json.dumps({"env": {"BOXCAR_TOLD": value}}))

    tell("before")
    cells = {"a": {"gate": 1}, "b": {"gate": 1}}
    told = {"is_hurried": False, "train": GATED, "resume": None, "secrets": ("BOXCAR_TOLD",)}
    run = make_run(cells, **told)
    agent = run.start()
    until((run.out("a") / "said.json").exists)
    until(lambda: waiting(run))
    tell("after")
    open_gate(run, "a")
    open_gate(run, "b")
    assert agent.wait(LIMIT_S) == 0
    assert [said(run, cell)["BOXCAR_TOLD"] for cell in "ab"] == ["before", "after"]


def test_torch_waits_beside_cells_that_are_soon_over_and_no_others(make_run, until):
    cells = {name: {"gate": 1, "lasts_s": NOT_AT_ONCE_S} for name in "abc"}
    run = make_run(cells, is_hurried=False, train=GATED, resume=None)
    agent = run.start()
    until(lambda: ways(run) == {""}, "nothing is known of how long cells take here")
    open_gate(run, "a")
    until(lambda: {float(way) for way in ways(run) if way}, "the first one took no ten minutes")
    open_gate(run, "b")
    open_gate(run, "c")
    assert agent.wait(LIMIT_S) == 0


@pytest.mark.parametrize(
    ("launcher", "staged", "after_s", "loads"),
    [
        ("-m torch.distributed.run --standalone", waiting_program.TORCHRUN, "2.5", True),
        ("-m torch.distributed.run --standalone", waiting_program.TORCHRUN, "", False),
        ("-m torch.distributed.run --standalone", "begin.py", "2.5", False),
        ("-u", waiting_program.TORCHRUN, "2.5", False),
    ],
)
def test_what_loads_torch_is_what_was_staged_for_torchrun(
    tmp_path, launcher, staged, after_s, loads
):
    script = tmp_path / staged
    script.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", [str(tmp_path / "begin.py"), "attempt"])
        found = waiting_program.meanwhile(("/its/python", *launcher.split()), after_s)
    assert found == (("/its/python", str(script), after_s) if loads else ())


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


@pytest.fixture
def idle(make_run, until):
    """A run whose agent has run `a`, and waits for lines; and the programs that wait with it."""
    cells = {"a": {"gate": 1}, "b": {"gate": 1}}
    run = make_run(cells, is_hurried=False, train=GATED, resume=None, linger_s=3600)
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    open_gate(run, "a")
    run.start()
    run.wait_for("cell.verified", "a")
    return run, until(lambda: waiting(run), "a program that waits")


def test_an_appended_cell_is_run_by_the_program_that_waited_while_there_was_none(idle, until):
    run, waits = idle
    run.append("configs/b.json count 3")
    until((run.out("b") / "said.json").exists)
    running = attempt.read_running(run.scratch().running("b"))
    assert running
    assert running.pid in waits
    assert said(run, "b") == said(run, "a") | {"waits": None, "stdin": "/dev/null"}
    open_gate(run, "b")
    run.wait_for("cell.verified", "b")
    run.ask("drain")
    assert run.agents[0].wait(LIMIT_S) == 0
    assert waiting(run) == []
    assert run.life("b") == ["claimed", "started", "succeeded", "synced", "verified"]


def test_an_idle_agent_that_is_killed_leaves_no_program_behind(idle, until):
    run, _ = idle
    run.agents[0].kill()
    run.agents[0].wait()
    until(lambda: not waiting(run))
    assert not run.scratch().cell("b").exists()


def test_what_a_killed_wrapper_left_is_found_by_the_group_that_was_made_before_its_cell(
    idle, until
):
    run, _ = idle
    run.append("configs/b.json count 3")
    until((run.out("b") / "said.json").exists)
    running = attempt.read_running(run.scratch().running("b"))
    assert running
    if not running.cgroup:
        pytest.skip("the kernel's groups may not be made here")
    group = leftovers._group(run.scratch(), "b", 1)
    assert group == running.cgroup
    assert cgroup.members(group)
    assert leftovers._group(run.scratch(), "b", 2) is None
    waited = process.waiting_cookie(str(run.scratch().root), running.pid)
    older = group.replace(cgroup.name_of(waited), cgroup.older_name_of(waited))
    record = run.scratch().running("b")
    record.write_text(record.read_text().replace(group, older))
    assert leftovers._group(run.scratch(), "b", 1) == older, "of an older release's wrapper"


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


WORDS = ("box", "a", "1", "python", "1", "0", "/code", "", "--")


@pytest.fixture
def let_in(tmp_path):
    """Of a program that counts what it is told: it where it is let in, and the count."""
    counts = tmp_path / "run_one.sh"
    counts.write_text("exit $(wc -c)\n")
    names = ("box", "cell", "number", "launcher", "ranks", "time_s", "workdir", "resume")

    def let_in(word, **other):
        one, head = Ahead(), dict(zip(names, WORDS, strict=False))
        one.start(["bash", str(counts), *WORDS, "first"], loads_after_s=None)
        waits = one._child
        child = one.let_in(["bash", str(counts), *(head | other).values(), "--", word])
        assert waits and child in (waits, None)
        counted = waits.wait(LIMIT_S)
        one.close()
        return child is not None, counted

    return let_in


@pytest.mark.parametrize(
    "other", [{"launcher": "torchrun"}, {"ranks": "2"}, {"workdir": "/"}, {"number": "2"}]
)
def test_a_program_that_waits_for_what_is_launched_otherwise_is_not_let_in(let_in, other):
    assert let_in("a", **other) == (False, 0)


def test_a_program_waits_for_any_cell_that_is_launched_alike(let_in):
    said = b"box\0b\x001\0python\x001\x0060\0/code\0last.pth\0--\0a"
    message = len(waiting_program.spelled([])) + len(said)
    assert let_in("a", cell="b", resume="last.pth", time_s="60") == (True, message)


def test_words_that_are_no_single_write_are_those_of_a_program_that_is_started_anew(let_in):
    assert let_in("a" * waiting_program.MOST_BYTES) == (False, 0)
