from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
    queue_done,
)

from boxcar.formats import codec, digest, durable
from boxcar.formats.delivered import Cursor, Delivered
from boxcar.formats.manifest import FileRecord
from boxcar.formats.release import FILE, Code, Release
from boxcar.laptop import watch as watch_module
from boxcar.laptop.watch import changes, undelivered, watch

ONBOX = """
import json, os, sys
with open(os.environ["BOXCAR_CREDENTIALS"]) as file:
    secret = json.load(file)["webhooks"][0]["secret"]
with open("CALLS", "a") as file:
    file.write(json.dumps([sys.flags.isolated, sys.flags.no_site, secret, *sys.argv]) + "\\n")
END
"""


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3"]})


def release_with(run: RunOnDisk, end: str) -> Path:
    """A release whose onbox says how it was called, and the file where it does."""
    calls = run.project.root / "calls"
    script = ONBOX.replace("CALLS", str(calls)).replace("END", end).encode()
    record = FileRecord("onbox-1.pyz", len(script), digest.of_bytes(script))
    release = Release("demo", "onbox-1.pyz", "training-1.zip", Code(None, False), (record,))
    folder = run.project.durable.release(release.digest)
    folder.mkdir()
    (folder / "onbox-1.pyz").write_bytes(script)
    durable.write_whole(folder / FILE, codec.to_document(release))
    credentials = Path(run.project.plan.box("box-a").credentials)
    credentials.write_text(json.dumps({"webhooks": [{"url": "u", "secret": "whsec_x"}]}))
    started = {"pid": 7, "release": release.digest, "start_index": 0}
    run.say("queue_1", ("agent.started", started), cell_verified("a"), queue_done())
    return calls


def write_cursor(run: RunOnDisk, **endpoints: Cursor) -> None:
    path = run.project.durable.delivered("queue_1")
    durable.write_whole(path, codec.to_document(Delivered(endpoints)))


def called(calls: Path) -> list[list[object]]:
    return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def test_watch_of_an_ended_run_returns_like_status(run, capsys):
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    assert watch(run.project, interval_s=0.05) == 0
    said = capsys.readouterr()
    assert "queue_1: done: every line of it was run" in said.out
    assert "next: invoke pull" in said.err
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    assert watch(run.project, interval_s=0.05) == 1


def test_watch_of_a_run_without_agents_does_not_wait(run):
    assert watch(run.project) == 0
    run.say("queue_1", agent_started(), cell_started("a"))
    assert watch(run.project) == 1, "a dead agent"


def test_watch_prints_a_line_for_each_change_until_the_queue_has_ended(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.project.durable.lock("queue_1")) as agent:
        threading.Timer(0.4, _end, (run, agent)).start()
        assert watch(run.project, interval_s=0.05) == 0
    lines = capsys.readouterr().out.splitlines()
    wanted = [
        "queue_1: running: works on a",
        "a: running, attempt 1",
        "a: verified, attempt 1",
        "queue_1: done: every line of it was run",
    ]
    assert sorted(line for line in lines if line in wanted) == sorted(wanted)


def _end(run, agent):
    run.say("queue_1", cell_verified("a"), queue_done())
    agent.stdin.close()


def test_watch_with_json_prints_one_document_and_the_changes_beside_it(run, capsys):
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    assert watch(run.project, as_json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["queues"][0]["condition"] == "done"
    assert "queue_1: done" in said.err


def test_interrupted_watch_says_that_the_run_goes_on(run, capsys):
    with held(run.project.durable.lock("queue_1")):
        threading.Timer(0.4, _thread.interrupt_main).start()
        assert watch(run.project, interval_s=0.05) == 130
    assert "The run goes on" in capsys.readouterr().err


def test_on_a_terminal_the_tables_are_drawn_and_names_stay_inert(tmp_path, monkeypatch):
    run = make_run(tmp_path, {"queue_1": ["configs/a.yaml [red]task 3"]})
    text = "\x1b]0;title\x07"
    run.say("queue_1", agent_started(), ("box.warning", {"what": "w", "text": text}), queue_done())
    master, slave = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        assert watch(run.project) == 0
        terminal.flush()
        drawn = os.read(master, 100_000).decode()
    os.close(master)
    assert "demo: queues" in drawn
    assert "[red]task" in drawn
    assert "\\x1b]0;title" in drawn
    assert "\x1b]0;title" not in drawn


def test_only_what_changed_is_said(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    before = run.look()
    assert changes(before, run.look(in_s=5)) == []
    run.say("queue_1", ("box.warning", {"what": "w", "text": "the disk fills up"}))
    assert changes(before, run.look()) == ["queue_1: warning: the disk fills up"]
    run.say("queue_1", cell_started("a", attempt=2))
    assert "a: running, attempt 2" in changes(before, run.look())


def test_what_is_undelivered_is_counted_by_the_slowest_endpoint(run):
    private = ("cell.claimed", {"cell": "a"})
    run.say("queue_1", agent_started(), private, cell_started("a"), queue_done())
    queue = run.look().queue("queue_1")
    assert undelivered(queue, Delivered({})) == 3
    assert undelivered(queue, Delivered({"x": Cursor(4), "y": Cursor(1)})) == 2
    assert undelivered(queue, Delivered({"x": Cursor(4), "y": Cursor(1, "410")})) == 0
    assert undelivered(queue, Delivered({"x": Cursor(0, "410")})) == 0


def test_watch_delivers_what_the_agent_could_not(run, capsys):
    calls = release_with(run, "")
    write_cursor(run, x=Cursor(1))
    watch(run.project)
    (isolated, no_site, secret, script, *words), *others = called(calls)
    folder = Path(script).parent
    assert (isolated, no_site, secret, others) == (1, 1, "whsec_x", [])
    assert words == ["deliver", "--release", str(folder), "--queue", "queue_1"]
    assert folder == run.project.durable.release(folder.name)


def test_watch_delivers_nothing_twice_and_nothing_beside_an_agent(run):
    calls = release_with(run, "")
    write_cursor(run, x=Cursor(3))
    watch(run.project)
    assert called(calls) == []
    write_cursor(run, x=Cursor(1))
    with held(run.project.durable.lock("queue_1")):
        threading.Timer(0.4, _thread.interrupt_main).start()
        assert watch(run.project, interval_s=0.05) == 130
    assert called(calls) == []


def test_a_queue_that_ended_is_delivered_once_while_another_goes_on(tmp_path):
    run = make_run(tmp_path)
    calls = release_with(run, "")
    run.say("queue_2", agent_started(), cell_started("c"))
    with held(run.project.durable.lock("queue_2")) as other:
        threading.Timer(0.5, other.stdin.close).start()
        watch(run.project, interval_s=0.05)
    assert len(called(calls)) == 1


def test_a_delivery_that_fails_is_said_and_watch_ends_as_it_would(run, capsys):
    release_with(run, "sys.exit('3 event(s) are not delivered')")
    assert watch(run.project) == 0
    said = capsys.readouterr().err
    assert "could not be delivered" in said
    assert "3 event(s) are not delivered" in said


def test_a_delivery_that_hangs_is_ended(run, capsys, monkeypatch):
    monkeypatch.setattr(watch_module, "DELIVER_TIMEOUT_S", 0.5)
    release_with(run, "import time; time.sleep(600)")
    began = time.monotonic()
    watch(run.project)
    assert time.monotonic() - began < 60
    assert "no answer in" in capsys.readouterr().err


def test_a_release_that_is_gone_or_damaged_is_said(run, capsys):
    release_with(run, "")
    folder = next(run.project.durable.releases.iterdir())
    (folder / FILE).write_text("{}")
    assert watch(run.project) == 0
    assert "could not be delivered" in capsys.readouterr().err


def test_without_credentials_in_reach_nothing_is_delivered_and_nothing_fails(run, capsys):
    calls = release_with(run, "")
    Path(run.project.plan.box("box-a").credentials).unlink()
    assert watch(run.project) == 0
    assert called(calls) == []
