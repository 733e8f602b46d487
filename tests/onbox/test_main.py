"""The door: what the verbs refuse, with which code, and before anything is touched."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S, until

from boxcar.shared.disk import lock
from boxcar.shared.files.release import PLAN, RUN_ONE
from onbox.__main__ import main


def onbox(run: Any, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The zipapp as the wrappers start it."""
    archive = next(run.release.glob("onbox-*.pyz"))
    return subprocess.run(
        [sys.executable, "-I", "-S", str(archive), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=env,
        cwd="/",
    )


@pytest.mark.parametrize("name", ["code/train.py", PLAN, RUN_ONE])
def test_a_release_that_was_altered_is_refused_by_the_files_name(make_run, name):
    run = make_run({"a": {}})
    path = run.release / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert run.finish() == 1
    assert name in run.said
    assert run.events() == []


def test_a_release_under_another_name_is_refused(make_run):
    run = make_run({"a": {}})
    run.release = run.release.rename(run.release.with_name("0" * 64))
    assert run.finish() == 1
    assert "0" * 64 in run.said
    assert run.events() == []


def test_an_agents_words_name_a_command_that_people_have(make_run):
    """`invoke` is typed in a checkout of Boxcar only."""
    run = make_run({"a": {}})
    agent = ("agent", "--release", str(run.release), "--queue", "q1", "--start-cell", "gone")
    said = onbox(run, *agent)
    reasons = [event.data.get("reason") or "" for event in run.events()]
    for text in (said.stderr + said.stdout, *reasons):
        assert "invoke" not in text
    assert any("boxcar launch --start-index N" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "VERB"),
        (("run",), "run"),
        (("agent", "--queue", "q1"), "--release"),
        (("agent", "--release", "{release}", "--queue", "q9"), "q9"),
        (("agent", "--release", "{release}", "--queue", "q1", "--start-index", "x"), "'x'"),
        (
            ("attempt", "--release", "{release}", "--box", "b9", "--cell", "a", "--attempt", "1"),
            "b9",
        ),
        (("deliver", "--release", "{release}", "--queue", "q9"), "q9"),
    ],
)
def test_a_wrong_command_is_refused_and_touches_nothing(make_run, words, told, capfd):
    run = make_run({"a": {}})
    try:
        code = main([word.format(release=run.release) for word in words])
    except SystemExit as refused:
        code = refused.code
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert told in err
    assert run.events() == []
    assert not Path(run.plan.box("box-a").data_dir).exists()


def test_a_release_that_is_not_there_is_named(make_run, tmp_path):
    run = make_run({"a": {}})
    done = onbox(run, "agent", "--release", str(tmp_path / "none"), "--queue", "q1")
    assert done.returncode == 75
    assert str(tmp_path / "none") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_journal_that_is_damaged_is_refused_by_its_line_and_kept(make_run):
    run = make_run({"a": {}})
    assert run.finish() == 0
    path = run.durable.journal("q1")
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], b"\0" * 40 + b"\n", *lines[2:]])
    path.write_bytes(damaged)
    assert run.finish() == 1
    assert f"{path}: line 2" in run.said
    assert path.read_bytes() == damaged


def test_credentials_that_others_can_read_start_no_agent(make_run):
    run = make_run({"a": {}})
    path = Path(run.plan.box("box-a").credentials)
    path.write_text(json.dumps({"env": {"KEY": "s3cr3t-0123456789"}}))
    path.chmod(0o644)
    assert run.finish() == 2
    assert f"chmod 600 {path}" in run.said
    assert "s3cr3t" not in run.said
    assert run.events() == []


def test_what_is_left_to_deliver_is_left_to_an_agent_that_runs(make_run):
    run = make_run({"a": {"gate": 1}})
    agent = run.start()
    run.wait_for_step("a")
    done = onbox(run, "deliver", "--release", str(run.release), "--queue", "q1")
    assert done.returncode == 75
    assert "q1" in done.stderr
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    done = onbox(run, "deliver", "--release", str(run.release), "--queue", "q1")
    assert done.returncode == 0
    assert "0 event" in done.stdout


@pytest.mark.faults
def test_a_receiver_that_is_down_at_the_end_of_a_run_gets_its_news_when_it_is_back(make_run):
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            body = b'{"code": 0}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    run = make_run({"a": {}})
    server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.server_bind()  # the port is ours, and refuses until it is listened at
    chat = {"channel": "feishu", "url": f"http://127.0.0.1:{server.server_address[1]}/hook"}
    path = Path(run.plan.box("box-a").credentials)
    path.write_text(json.dumps({"env": {}, "webhooks": [], "channels": [chat], "language": "zh"}))
    path.chmod(0o600)
    words = ("agent", "--release", str(run.release), "--queue", "q1")
    ended = onbox(run, *words, BOXCAR_CREDENTIALS=str(path), PATH="/usr/bin:/bin")
    assert run.events()[-1].type == "agent.stopped", ended.stderr
    assert heard == []
    assert not lock.is_held(run.durable.lock("q1"))
    server.server_activate()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    until(lambda: bool(heard))
    server.shutdown()
    server.server_close()
    assert "q1 已完成" in heard[-1]["content"]["text"]


def test_the_environment_brings_no_module_of_its_own(make_run, tmp_path):
    run = make_run({"a": {}})
    for name in ("boxcar", "onbox", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('another one was taken')")
    done = onbox(run, "--help", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    assert "agent" in done.stdout


def test_the_gpus_are_a_json_list_also_where_there_is_none(make_run):
    done = onbox(make_run({"a": {}}), "gpus")
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), list)
