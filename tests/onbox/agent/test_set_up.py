"""What a box needs before its first cell: `setup` and `requirements`, once a box."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from plans import make_plan
from waiting import LIMIT_S

from boxcar.shared.disk import digest
from boxcar.shared.process import exit_codes
from onbox.agent import set_up
from onbox.machine import set_up_marks

CELLS = {"a": {}, "b": {}}


def script(folder: Path, rest: str = "") -> str:
    """One that says in `folder` that it ran."""
    return f"echo ran >> {folder}/ran\n{rest}"


def times_run(folder: Path) -> int:
    path = folder / "ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_it_is_done_before_the_first_cell_and_once_a_box(make_run, tmp_path):
    run = make_run(CELLS, setup="setup.sh", code={"setup.sh": script(tmp_path)})
    assert run.finish() == 0
    assert [event.type for event in run.events() if event.type.startswith("setup.")] == [
        "setup.started",
        "setup.done",
    ]
    types = [event.type for event in run.events()]
    assert types.index("setup.done") < types.index("cell.started")
    run.append("configs/a.json count 3 name=c")
    assert run.finish() == 0
    assert run.state("c") == "verified"
    assert times_run(tmp_path) == 1
    run.append("configs/a.json count 3 name=d", queue="q2")
    assert run.finish("q2") == 0
    assert times_run(tmp_path) == 2


def test_a_new_system_disk_is_set_up_again(make_run, tmp_path):
    run = make_run({"a": {}}, setup="setup.sh", code={"setup.sh": script(tmp_path)})
    assert run.finish() == 0
    (twin,) = tmp_path.glob("boxcar-setup-*")
    twin.unlink()
    run.append("configs/a.json count 3 name=b")
    assert run.finish() == 0
    assert times_run(tmp_path) == 2


def test_one_that_fails_stops_the_queue_with_the_end_of_its_log_and_is_tried_at_the_next_launch(
    make_run, tmp_path
):
    text = f"[ -e {tmp_path}/fine ] || {{ echo no such package >&2; exit 4; }}\n"
    run = make_run(CELLS, setup="setup.sh", code={"setup.sh": script(tmp_path, text)})
    assert run.finish() == exit_codes.STOP_QUEUE
    (stopped,) = run.events("queue.stopped")
    assert stopped.data["reason"].startswith("SETUP: the set-up of box-a ended with 4: no such")
    assert not run.events("cell.started")
    (tmp_path / "fine").touch()
    assert run.finish() == 0
    assert times_run(tmp_path) == 2
    assert [run.state(cell) for cell in CELLS] == ["verified"] * 2


def test_what_it_leaves_beside_the_code_is_moved_away_and_said(make_run):
    run = make_run({"a": {}}, setup="setup.sh", code={"setup.sh": "touch built.so"})
    assert run.finish() == 0
    (warning,) = run.warnings("code_added")
    assert "built.so" in warning
    assert run.state("a") == "verified"


def test_it_has_the_jobs_variables_and_secrets_but_no_terminal_and_repeats_no_secret(
    make_run, tmp_path
):
    text = f"cat; env > {tmp_path}/env; echo $API_KEY; which python; exit 1"
    run = make_run(
        CELLS,
        setup="setup.sh",
        code={"setup.sh": text},
        job_env={"INDEX": "https://mirror", "OF_A_CELL": "{name}"},
    )
    file = Path(run.plan.box("box-a").credentials)
    file.write_text(json.dumps({"env": {"API_KEY": "not-to-be-told"}}))
    file.chmod(0o600)
    assert run.finish() == exit_codes.STOP_QUEUE
    env = (tmp_path / "env").read_text().splitlines()
    assert {"INDEX=https://mirror", "API_KEY=not-to-be-told", "BOXCAR_RUN=tiny"} <= {*env}
    assert not any(line.startswith(("OF_A_CELL", "BOXCAR_CREDENTIALS")) for line in env)
    (stopped,) = run.events("queue.stopped")
    assert "not-to-be-told" not in stopped.data["reason"]
    (log,) = run.scratch().set_ups.glob("*.log")
    assert log.stat().st_mode & 0o077 == 0


def test_where_nothing_can_be_kept_it_is_done_once_by_each_agent(make_run, tmp_path):
    run = make_run(CELLS, setup="setup.sh", code={"setup.sh": script(tmp_path)})
    asked = set_up_marks.digest_of(run.plan, run.release / "code")
    name = f"{run.scratch().set_ups} {asked}"
    (tmp_path / f"boxcar-setup-{digest.of_bytes(name.encode())[:32]}").mkdir()
    assert run.finish() == 0
    assert [run.state(cell) for cell in CELLS] == ["verified"] * 2
    assert times_run(tmp_path) == 1


def test_one_that_hangs_is_ended_at_its_limit(make_run):
    text = "trap '' TERM; echo waits for ever; sleep 1000 & wait; sleep 1000"
    run = make_run({"a": {}}, setup="setup.sh", setup_time_s=1, code={"setup.sh": text})
    assert run.finish() == exit_codes.STOP_QUEUE
    (stopped,) = run.events("queue.stopped")
    # On a busy machine the limit comes before its first word.
    said = stopped.data["reason"].partition("took longer than setup_time (1 s): ")[2]
    assert said.startswith(("waits for ever", "it said nothing")), stopped.data["reason"]


def test_told_to_stop_it_is_ended_and_no_cell_is_begun(make_run, tmp_path, until):
    run = make_run({"a": {}}, setup="setup.sh", code={"setup.sh": script(tmp_path, "sleep 1000")})
    agent = run.start()
    until(lambda: times_run(tmp_path))
    run.ask("stop")
    assert agent.wait(LIMIT_S) is not None
    assert not run.events("cell.started")
    (stopped,) = run.events("queue.stopped")
    assert stopped.data["by"] == "stop"


def test_who_comes_after_a_killed_agent_waits_for_what_that_had_begun(make_run, tmp_path, until):
    gate = tmp_path / "gate"
    text = script(tmp_path, f"until [ -e {gate} ]; do sleep 0.1; done; echo over >> {tmp_path}/ran")
    run = make_run({"a": {}}, setup="setup.sh", code={"setup.sh": text})
    first = run.start()
    until(lambda: times_run(tmp_path))
    os.kill(first.pid, signal.SIGKILL)
    first.wait(LIMIT_S)
    second = run.start()
    until(lambda: len(run.events("agent.started")) == 2)
    gate.touch()
    assert second.wait(LIMIT_S) == 0
    # The first one's end was seen by nobody, so it is done once more, and never side by side.
    assert (tmp_path / "ran").read_text().split() == ["ran", "over", "ran", "over"]


def test_a_release_with_another_script_is_another_set_up(make_run, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "setup.sh").write_text("one")
    (code / "requirements.txt").write_text("torch\n")
    plans = [
        make_plan(setup="setup.sh"),
        make_plan(setup="setup.sh", training_python="/opt/conda/bin/python"),
        make_plan(setup="setup.sh", requirements="requirements.txt"),
        make_plan(setup="setup.sh", requirements="requirements.txt", install=True),
    ]
    found = {set_up_marks.digest_of(one, code) for one in plans}
    (code / "setup.sh").write_text("two")
    assert len({*found, set_up_marks.digest_of(plans[0], code)}) == 5


def test_packages_are_installed_beside_the_torch_that_is_there(tmp_path):
    held = tmp_path / "held"
    asked = make_plan(requirements="needs.txt", install=True, training_python=sys.executable)
    write, install = set_up.set_up_commands(asked, held)
    subprocess.run(write, check=True)
    lines = held.read_text().splitlines()
    assert any(line.startswith("torch==") for line in lines)
    assert install[:4] == [sys.executable, "-m", "pip", "install"]
    assert install[-4:] == ["-r", "needs.txt", "-c", str(held)]


DEAD = "http://127.0.0.1:1/simple"


def test_a_dead_mirror_is_said_and_neither_the_set_up_nor_a_cell_uses_it(make_run, tmp_path):
    run = make_run(
        {"a": {}},
        setup="setup.sh",
        code={"setup.sh": f"env > {tmp_path}/env"},
        env={"PIP_INDEX_URL": DEAD, "HF_ENDPOINT": "http://127.0.0.1:1"},
    )
    assert run.finish() == 0
    env = (tmp_path / "env").read_text().splitlines()
    assert "PIP_INDEX_URL=https://pypi.org/simple" in env
    assert not any(line.startswith("HF_ENDPOINT") for line in env)
    got = json.loads((run.out("a") / "environment.json").read_text())
    assert "HF_ENDPOINT" not in got
    said = run.warnings("mirror_dead")
    assert any(f"PIP_INDEX_URL: {DEAD} is dead from here and is not used" in one for one in said)
