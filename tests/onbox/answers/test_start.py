from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared.disk import lock
from boxcar.shared.files import codec, control
from boxcar.shared.files import control as record
from boxcar.shared.files.control import Control
from boxcar.shared.files.plan import Box
from boxcar.shared.wire import envelope
from onbox.answers import door
from onbox.machine import set_up_marks

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")


def words_of(tiny: Any, **words: Any) -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": tiny.plan.durable_dir}
    places |= {"data_dir": tiny.plan.box("box-a").data_dir}
    what = {"queue": "q1", "digest": tiny.release.name, "start_index": 0, "detach": ["setsid"]}
    return {"ask": "start", **places, **what, **words}


def ask(tiny: Any, **words: Any) -> dict[str, Any]:
    return door.answer(json.dumps(words_of(tiny, **words)).encode())


def pid_of_agent(run: Any) -> int:
    return int(run.wait_for("agent.started").data["pid"])


@needs_tmux
def test_by_tmux_it_runs_in_a_session_that_is_named_after_it(make_run):
    run = make_run({"a": {"gate": 1}})
    told = ask(run, detach=["tmux", "setsid"])
    assert told == {"by": "tmux", "pid": pid_of_agent(run)}
    run.wait_for_step("a")
    names = subprocess.run(
        ["tmux", "-S", "tmux", "list-sessions", "-F", "#{session_name}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=run.scratch().root,
    )
    assert names.stdout.split() == ["boxcar-tiny-q1"]
    run.open_gate()
    run.wait_for("queue.done")
    assert run.result("a")["step"] == 1


@needs_tmux
def test_a_tmux_that_the_run_does_not_own_is_not_touched(make_run, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".tmux.conf").write_text(f"run-shell 'touch {tmp_path}/read'\n")
    monkeypatch.setenv("HOME", str(home))
    run = make_run({"a": {}})
    assert ask(run, detach=["tmux"])["by"] == "tmux"
    run.wait_for("queue.done")
    assert not (tmp_path / "read").exists()


@needs_tmux
def test_a_data_folder_may_be_longer_than_the_path_of_a_socket(make_run, tmp_path):
    deep = str(tmp_path / ("d" * 100) / "with a space")
    boxes = (Box("box-a", deep, f"{tmp_path}/a.json"), Box("box-b", deep, f"{tmp_path}/b.json"))
    run = make_run({"a": {}}, boxes=boxes)
    assert ask(run, detach=["tmux"])["by"] == "tmux"
    run.wait_for("queue.done")


@pytest.mark.parametrize("detach", [pytest.param(["tmux"], marks=needs_tmux), ["setsid"]])
def test_the_training_gets_the_boxs_own_environment_and_nothing_of_the_connection(
    make_run, monkeypatch, detach
):
    monkeypatch.setenv("SSH_CONNECTION", "s3cr3t-0123456789")
    monkeypatch.setenv("LC_ODD", "a b'\"$HOME;")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0;")
    run = make_run({"a": {}})
    assert ask(run, detach=detach)["by"] == detach[0]
    run.wait_for("queue.done")
    found = json.loads((run.out("a") / "environment.json").read_text())
    assert "SSH_CONNECTION" not in found and "TMUX" not in found
    assert (found["LC_ODD"], found["CUDA_VISIBLE_DEVICES"]) == ("a b'\"$HOME;", "0;")
    assert "s3cr3t" not in run.scratch().start("q1").read_text()


@pytest.mark.parametrize("detach", [["setsid"], [], ["setsid", "tmux"]])
def test_else_it_has_a_session_of_its_own_and_writes_its_own_log(make_run, detach):
    run = make_run({"a": {"gate": 1}})
    told = ask(run, detach=detach)
    assert told == {"by": "setsid", "pid": pid_of_agent(run)}
    assert os.getsid(told["pid"]) == told["pid"]
    run.ask("stop")
    run.wait_for("queue.stopped")
    # The journal hears it first.
    log = run.scratch().agent_log("q1")
    until(lambda: "asked to stop" in log.read_text(), "the last word in the agent's own log")


def test_a_tmux_that_does_not_work_is_no_obstacle(make_run, tmp_path, monkeypatch, capfd):
    (tmp_path / "bin").mkdir()
    broken = tmp_path / "bin" / "tmux"
    broken.write_text("#!/bin/sh\necho need UTF-8 locale >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    run = make_run({"a": {}})
    assert ask(run, detach=["tmux"])["by"] == "setsid"
    assert "need UTF-8 locale" in capfd.readouterr().err
    run.wait_for("queue.done")


def test_the_set_up_of_a_box_is_done_again_where_that_is_asked(make_run, tmp_path, monkeypatch):
    monkeypatch.setattr(set_up_marks, "TWINS", tmp_path)
    run = make_run({"a": {}}, setup="setup.sh", code={"setup.sh": f"echo ran >> {tmp_path}/ran\n"})
    for count, words in enumerate(({}, {}, {"sets_up_again": True}), start=1):
        run.append(f"configs/a.json count 3 name=b{count}")
        ask(run, **words)
        run.wait_for("queue.done", count=count)
        until(lambda: not lock.is_held(run.durable.lock("q1")))
    assert (tmp_path / "ran").read_text().splitlines() == ["ran"] * 2
    assert len(run.events("setup.done")) == 2


def test_an_agent_that_runs_is_left_alone(make_run):
    run = make_run({"a": {"gate": 1}})
    ask(run)
    before = run.scratch().start("q1").read_bytes()
    assert ask(run, start_index=1) == {"by": "running", "pid": None}
    assert run.scratch().start("q1").read_bytes() == before
    run.open_gate()
    run.wait_for("queue.done")
    assert len(run.events("agent.started")) == 1


def test_of_several_who_start_it_at_once_one_does(make_run):
    run = make_run({"a": {"gate": 1}})
    archive = next(run.release.glob("onbox-*.pyz"))
    request = json.dumps(words_of(run)).encode()
    askers = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", str(archive), "answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for asker in askers:
        assert asker.stdin
        asker.stdin.write(request)
        asker.stdin.close()
    told = []
    for asker in askers:
        assert asker.stdout
        with asker, asker.stdout as stdout:
            told.append(json.loads(stdout.read().removeprefix(envelope.MARK))["by"])
    assert sorted(told) == ["running", "running", "setsid"]
    run.open_gate()
    run.wait_for("queue.done")
    assert len(run.events("agent.started")) == 1


def test_how_it_was_started_is_on_record_before_it_is(make_run):
    run = make_run({"a": {}, "b": {}})
    # A wrapper that looks: what it finds was there before it was started.
    wrapper = run.release / "run_queue.sh"
    wrapper.write_text(f"cp {run.scratch().start('q1')} {run.root}/found\n")
    ask(run, start_index=1, detach=["setsid", "tmux"])
    found = record.read_agent_start(run.root / "found")
    assert (found.run, found.queue, found.box) == ("tiny", "q1", "box-a")
    assert (found.release, found.start_index) == (run.release.name, 1)
    assert (found.durable_dir, found.detach) == (run.plan.durable_dir, ("setsid", "tmux"))
    assert found.env["PATH"] == os.environ["PATH"]


def test_an_agent_that_ends_at_once_is_not_waited_for(make_run):
    run = make_run({"a": {}})
    (run.release / "run_queue.sh").write_text("echo no such interpreter >&2; exit 127\n")
    assert ask(run)["by"] == "setsid"
    run_log: Callable[[], str] = run.scratch().agent_log("q1").read_text
    assert run_log() == "no such interpreter\n"


@pytest.mark.parametrize(
    "words",
    [
        *({"queue": "q9"}, {"digest": "0a" * 32}, {"digest": "x"}, {"start_index": -1}),
        *({"detach": ["nohup"]}, {"detach": "tmux"}, {"run": "../x"}),
    ],
)
def test_what_cannot_be_started_touches_nothing(make_run, words):
    run = make_run({"a": {}})
    assert ask(run, **words)["error"]["kind"] == "InputError"
    assert not run.scratch().root.exists()


def test_somebody_who_is_starting_it_and_hangs_is_said(make_run, monkeypatch):
    monkeypatch.setattr("onbox.answers.start.STARTER_S", 0.1)
    run = make_run({"a": {}})
    run.scratch().root.mkdir(parents=True)
    fd = lock.try_hold(run.scratch().agent_log("q1"))
    assert fd is not None
    assert ask(run)["error"]["kind"] == "TemporaryError"
    os.close(fd)
    assert not run.scratch().start("q1").exists()


# --- orders to an agent


AT = "2026-11-21T03:27:43.973Z"


def order(tmp_path: Path, document: Any, queue: str = "q1") -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": str(tmp_path / "tier"), "data_dir": str(tmp_path)}
    words = {"ask": "control", **places, "queue": queue, "document": document}
    return door.answer(json.dumps(words).encode())


def test_a_wish_is_what_the_agent_reads(tmp_path):
    path = tmp_path / "tier/boxcar/tiny/control/q1.json"
    for wanted in (Control(control.DRAIN, AT), Control(control.RUN, AT, {"by": "me"})):
        assert order(tmp_path, codec.encode(wanted)) == {}
        assert path.read_bytes() == codec.to_document(wanted)
        assert control.wanted(path) == wanted.want


@pytest.mark.parametrize("document", [None, [], {}, {"want": 1, "at": AT}, {"want": "run"}])
def test_what_is_no_wish_is_refused(tmp_path, document):
    assert order(tmp_path, document)["error"]["kind"] == "InputError"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_behind_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tier/boxcar/tiny").mkdir(parents=True)
    (tmp_path / "tier/boxcar/tiny/control").symlink_to(tmp_path / "elsewhere")
    assert order(tmp_path, codec.encode(Control("run", AT)))["error"]["kind"] == "InputError"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_format_in_the_wish_does_not_become_that_of_the_file(tmp_path):
    wish = codec.encode(Control(control.STOP, AT)) | {"format": "boxcar.other/9"}
    assert order(tmp_path, wish) == {}
    assert control.wanted(tmp_path / "tier/boxcar/tiny/control/q1.json") == control.STOP
