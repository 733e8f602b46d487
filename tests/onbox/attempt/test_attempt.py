from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import atomic, lock
from boxcar.shared.files import attempt, attempt_spec, codec, release
from boxcar.shared.files.attempt import Done, read_processes
from boxcar.shared.files.release import RUN_ONE
from boxcar.shared.paths import ScratchPaths
from onbox.attempt import attempt as program
from onbox.attempt import stage, watch
from onbox.attempt.leftovers import written_down
from onbox.attempt.watch import Record
from onbox.machine import oom_kills, process


def done(run: Any, number: int = 1) -> Done | None:
    return attempt.read_done(run.scratch().done("a", number))


def log(run: Any) -> str:
    return run.scratch().log("a").read_text()


def finish(run: Any, number: int = 1) -> int:
    return run.attempt("a", number).wait(LIMIT_S)


def test_an_attempt_leaves_its_record_its_log_and_its_results(make_run):
    run = make_run({"a": {"prints": "hello"}})
    assert finish(run) == 0
    found = done(run)
    assert found
    assert (found.cell, found.attempt, found.rc, found.was_told_to_stop) == ("a", 1, 0, False)
    assert log(run).startswith("=== attempt 1 at a,")
    assert "hello" in log(run)
    assert (run.out("a") / "m.json").exists()


def test_while_it_runs_it_holds_the_log_and_says_who_it_is(make_run):
    run = make_run({"a": {"gate": 1}})
    wrapper = run.attempt("a")
    run.wait_for_step("a")
    assert lock.is_held(run.scratch().log("a"))
    running = attempt.read_running(run.scratch().running("a"))
    assert running
    assert running.pid == wrapper.pid
    assert process.is_same(running.pid, running.start_time, running.boot_id)
    run.open_gate()
    assert wrapper.wait(LIMIT_S) == 0
    assert not lock.is_held(run.scratch().log("a"))


def test_each_attempt_says_where_its_part_of_the_log_begins(make_run):
    run = make_run({"a": {"exits": [1], "prints": "its own words"}})
    before = ""
    for number in (1, 2):
        assert finish(run, number) == 1
        running = attempt.read_running(run.scratch().running("a"))
        own = log(run).encode()[running.log_begins_at_bytes :].decode()
        head = log(run).removeprefix(before).removesuffix(own)
        assert (head.startswith(f"=== attempt {number} at a,"), own) == (True, "its own words\n")
        before = log(run)


@pytest.mark.parametrize("code", [1, 42, 85])
def test_the_exit_code_of_the_script_is_recorded_and_passed_on(make_run, code):
    run = make_run({"a": {"exits": [code]}})
    assert finish(run) == code
    assert done(run).rc == code


def test_a_script_that_a_signal_ended_is_recorded_by_the_signal(make_run):
    run = make_run({"a": {"kills_itself": signal.SIGKILL}})
    assert finish(run) == 128 + signal.SIGKILL
    assert done(run).rc == -signal.SIGKILL


# --- what there is nothing left to do for


def test_an_attempt_that_has_ended_is_not_run_again(make_run):
    run = make_run({"a": {}})
    assert finish(run) == 0
    assert finish(run) == 0
    assert len(run.starts("a")) == 1


def test_an_attempt_that_was_overtaken_does_nothing(make_run):
    run = make_run({"a": {}})
    assert finish(run, 2) == 0
    assert finish(run, 1) == 0
    assert len(run.starts("a")) == 1
    assert done(run, 1) is None


def test_a_published_cell_is_not_run_again(make_run):
    run = make_run({"a": {}})
    run.durable.cell("a").mkdir()
    run.durable.manifest("a").write_text("{}")
    assert finish(run) == 0
    assert run.starts("a") == []


def test_of_two_attempts_at_once_the_second_waits_a_little_and_gives_way(make_run):
    run = make_run({"a": {"gate": 1}})
    first = run.attempt("a", 1)
    run.wait_for_step("a")
    assert finish(run, 2) == 75
    assert "still running" in log(run) + run.said
    run.open_gate()
    assert first.wait(LIMIT_S) == 0
    assert len(run.starts("a")) == 1


# --- leaving


def test_told_to_stop_it_lets_the_script_save_and_says_so(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": 85}})
    wrapper = run.attempt("a")
    run.wait_for_step("a")
    wrapper.terminate()
    assert wrapper.wait(LIMIT_S) == 85
    assert done(run).was_told_to_stop
    assert json.loads((run.out("a") / "latest.json").read_text()) == {"step": 1}


def test_a_script_that_does_not_listen_is_killed_in_the_end(make_run):
    run = make_run({"a": {"gate": 1, "on_term": "ignore"}})
    wrapper = run.attempt("a")
    pid = run.wait_for_step("a")
    wrapper.terminate()
    assert wrapper.wait(LIMIT_S) == 128 + signal.SIGKILL
    assert done(run).was_told_to_stop
    assert not run.is_alive(pid)


def test_told_before_the_script_has_begun_it_passes_it_on_and_records_it(make_run, monkeypatch):
    run = make_run({"a": {"gate": 1}})
    spec = replace(run.spec("a"), workdir=str(run.release / "code"))
    # Asked for just after the attempt has said that it runs, and just before it starts the script.
    monkeypatch.setattr(oom_kills, "count", lambda: os.kill(os.getpid(), signal.SIGTERM) or 0)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = program.run(spec)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM
    found = done(run)
    assert (found.was_told_to_stop, found.rc) == (True, -signal.SIGTERM)


@pytest.mark.parametrize("without", ["nothing", "log", "environment"])
def test_a_daemon_that_a_script_leaves_behind_is_ended_with_the_attempt(make_run, without):
    run = make_run({"a": {"child": without}})
    assert finish(run) == 0
    child = int((run.out("a") / "child").read_text())
    assert not run.is_alive(child)
    assert done(run).rc == 0


def test_the_log_is_held_as_long_as_any_process_of_the_attempt_lives(make_run, until):
    run = make_run({"a": {"child": "nothing", "gate": 1}})
    wrapper = run.attempt("a")
    script = run.wait_for_step("a")
    child = int((run.out("a") / "child").read_text())
    wrapper.kill()
    wrapper.wait()
    until(lambda: not run.is_alive(script))
    assert run.is_alive(child)
    assert lock.is_held(run.scratch().log("a"))
    process.end_all(
        lambda: process.with_cookie(process.cookie(str(run.scratch().root), "a", 1)), 0.2
    )
    assert not run.is_alive(child)
    assert not lock.is_held(run.scratch().log("a"))


def test_a_script_whose_wrapper_was_killed_is_told_to_leave(make_run, until):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": 85}})
    wrapper = run.attempt("a")
    script = run.wait_for_step("a")
    wrapper.kill()
    wrapper.wait()
    until(lambda: not run.is_alive(script))
    assert json.loads((run.out("a") / "latest.json").read_text()) == {"step": 1}
    assert done(run) is None


# --- the environment


def write_credentials(run: Any, mode: int = 0o600, **env: str) -> Path:
    path = Path(run.plan.box("box-a").credentials)
    path.write_text(json.dumps({"env": env, "webhooks": []}))
    path.chmod(mode)
    return path


def environment(run: Any) -> dict[str, str]:
    return json.loads((run.out("a") / "environment.json").read_text())


def test_the_script_gets_its_secrets_and_not_the_way_to_the_others(make_run):
    run = make_run({"a": {"gate": 1}}, env={"WANDB_MODE": "offline"})
    write_credentials(run, WANDB_API_KEY="s3cr3t-0123456789")
    wrapper = run.attempt("a")
    run.wait_for_step("a")
    lines = [_read(entry / "cmdline") for entry in Path("/proc").glob("[0-9]*")]
    assert not any(b"s3cr3t-0123456789" in line for line in lines)
    run.open_gate()
    assert wrapper.wait(LIMIT_S) == 0
    found = environment(run)
    assert found["WANDB_API_KEY"] == "s3cr3t-0123456789"
    assert found["WANDB_MODE"] == "offline"
    assert "BOXCAR_CREDENTIALS" not in found
    assert "s3cr3t" not in log(run)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_script_knows_its_run_its_cell_and_its_places(make_run):
    run = make_run({"a": {}})
    assert finish(run) == 0
    found = environment(run)
    assert found["BOXCAR_RUN"] == "tiny"
    assert found["BOXCAR_CELL"] == "a"
    assert found["BOXCAR_OUT"] == str(run.out("a"))
    assert found["BOXCAR_RESUME"] == str(run.out("a") / "latest.json")
    assert found["BOXCAR_DATA_DIR"] == run.plan.box("box-a").data_dir


def test_credentials_that_others_can_read_start_nothing(make_run):
    run = make_run({"a": {}})
    path = write_credentials(run, mode=0o644, KEY="s3cr3t-0123456789")
    assert finish(run) == 2
    assert f"chmod 600 {path}" in run.said
    assert "s3cr3t" not in run.said
    assert run.starts("a") == []


# --- what says it


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2], "not a JSON document"),
        (lambda data: data.replace(b"attempt-spec/1", b"attempt-spec/2"), "newer"),
        (lambda data: data.replace(b'"words"', b'"worms"'), "words"),
    ],
)
def test_a_spec_that_is_cut_off_or_newer_runs_nothing_and_is_one_sentence(make_run, damage, words):
    run = make_run({"a": {}})
    path = run.scratch().spec("a", 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(damage(codec.to_document(run.spec("a"))))
    assert run.run(RUN_ONE, str(path)).wait(LIMIT_S) == 2
    assert words in run.said and "Nothing was run" in run.said
    assert "Traceback" not in run.said and len(run.said.splitlines()) == 1
    assert run.starts("a") == []


def test_an_agent_of_an_older_release_is_told_so_and_nothing_is_run(make_run):
    """It calls run_one.sh with a word for each value."""
    run = make_run({"a": {}})
    words = ("box-a", "a", "1", "python", "1", "0", "/code", "/resume", "--", "train.py")
    assert run.run(RUN_ONE, *words).wait(LIMIT_S) == 2
    assert "another Boxcar" in run.said and len(run.said.splitlines()) == 1
    assert run.starts("a") == []


def test_a_spec_holds_no_secret_and_is_its_users_alone(make_run):
    run = make_run({"a": {}})
    write_credentials(run, WANDB_API_KEY="s3cr3t-0123456789")
    assert finish(run) == 0
    path = run.scratch().spec("a", 1)
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"s3cr3t" not in path.read_bytes()
    assert attempt_spec.read_attempt_spec(path) == run.spec("a")


def test_the_wrapper_stays_small(make_run):
    run = make_run({"a": {"gate": 1}}, is_hurried=False)
    made = release.read_release(run.release)
    stage.of_release(run.release, made, run.scratch()).restore()
    path = run.scratch().spec("a", 1)
    path.parent.mkdir(parents=True)
    attempt_spec.write_attempt_spec(path, run.spec("a"))
    run.release = run.scratch().wrapper(run.release.name)
    wrapper = run.run(RUN_ONE, str(path))
    run.wait_for_step("a")
    maps = Path(f"/proc/{wrapper.pid}/maps").read_text()
    assert "python" in maps
    assert "_ssl" not in maps  # what requests would bring
    run.open_gate()
    assert wrapper.wait(LIMIT_S) == 0


# --- the program


ROOT = Path(__file__).parents[3]
# As an agent does between two releases: the names of a line, such as `-`, are interned.
TWICE = """\
import sys
from pathlib import Path
from onbox.attempt.stage import Program

before = Program(Path(sys.argv[1])).records()
for word in ("-", "a", "configs/a.json"):
    sys.intern("".join(list(word)))
print(len(before), before == Program(Path(sys.argv[1])).records())
"""


def test_what_is_proven_of_a_program_depends_on_no_process(tmp_path, archives):
    archive = tmp_path / archives.onbox
    archive.write_bytes(archives.files[archives.onbox])
    words = [sys.executable, "-c", TWICE, str(archive)]
    told = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    count, is_same = told.split()
    assert int(count) > 10 and is_same == "True"


# --- its processes


SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    made = ScratchPaths(tmp_path, "r")
    made.cell("c").mkdir(parents=True)
    return made


def test_what_was_started_is_written_down_and_found_again_while_it_lives(scratch):
    record = Record(scratch, "c", 1)
    with subprocess.Popen(SLEEP) as child:
        assert record.look() >= watch.LOOK_EVERY_S
        assert child.pid in written_down(scratch, "c", 1)
        assert written_down(scratch, "c", 2) == [], "of another attempt"
        child.kill()
    assert child.pid not in written_down(scratch, "c", 1)
    record.look()
    found = read_processes(scratch.processes("c"))
    assert found
    assert child.pid not in [one.pid for one in found.processes]


def test_a_number_that_is_somebody_elses_by_now_is_not_taken_for_it(scratch, monkeypatch):
    with subprocess.Popen(SLEEP) as child:
        Record(scratch, "c", 1).look()
        monkeypatch.setattr(watch.process, "boot_id", lambda: "another boot")
        assert written_down(scratch, "c", 1) == []
        child.kill()


def test_a_record_is_written_only_when_something_has_changed(scratch, monkeypatch):
    record = Record(scratch, "c", 1)
    record.look()
    monkeypatch.setattr(atomic, "write_whole", lambda path, data: pytest.fail("written again"))
    record.look()


def test_without_a_record_or_with_a_damaged_one_nothing_is_known(scratch):
    assert written_down(scratch, "c", 1) == []
    scratch.processes("c").write_bytes(b"{")
    assert written_down(scratch, "c", 1) == []
    scratch.processes("c").unlink()
    os.mkfifo(scratch.processes("c"))
    assert written_down(scratch, "c", 1) == []
