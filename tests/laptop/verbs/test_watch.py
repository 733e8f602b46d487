from __future__ import annotations

import _thread
import contextlib
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import WEIGHTS
from finished_run import make_run as make_finished_run
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

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.run import undelivered
from boxcar.laptop.run.news import changes
from boxcar.laptop.verbs import watch as watch_module
from boxcar.laptop.verbs.watch import watch
from boxcar.laptop.webhooks.receiver import serve
from boxcar.shared.disk import atomic, digest
from boxcar.shared.files import codec, release
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.receipt import CellReceipt, Teardown
from boxcar.shared.files.release import PLAN, Code, Release
from boxcar.shared.wire import news_asks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3"]})


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[str]]]:
    """The URL of a real receiver, and the types of the events that came, once each."""
    came: list[str] = []
    with serve(0, SECRET, lambda event: came.append(event.type), say=lambda text: None) as found:
        yield found.url, came


def ended(run: RunOnDisk, url: str) -> str:
    """A queue that has ended, with its release and its box's credentials; the cursor's name."""
    folder = pushed(run)
    record = {"env": {}, "webhooks": [{"url": url, "secret": SECRET}]}
    path = Path(run.project.plan.box("box-a").credentials)
    atomic.write_whole(path, json.dumps(record).encode(), mode=0o600)
    type_, data = agent_started()
    started = type_, data | {"release": folder.name}
    run.say("queue_1", started, cell_verified("a"), queue_done())
    return digest.of_bytes(url.encode())


def pushed(run: RunOnDisk) -> Path:
    """A release that holds nothing but the run's plan."""
    data = codec.to_document(run.project.plan)
    files = (FileRecord(PLAN, len(data), digest.of_bytes(data)),)
    made = Release("demo", "onbox.pyz", "training.zip", Code(None, is_dirty=False), files)
    folder = run.site.tier.release(made.digest)
    atomic.make_folder(folder)
    atomic.write_whole(folder / PLAN, data)
    atomic.write_whole(folder / release.FILE, codec.to_document(made))
    return folder


def write_cursor(run: RunOnDisk, endpoints: dict[str, Cursor]) -> None:
    path = run.site.tier.delivered("queue_1")
    atomic.write_whole(path, codec.to_document(Delivered(endpoints)))


def test_watch_of_an_ended_run_returns_like_status(run, capsys):
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    assert watch(run.project, interval_s=0.05) == 0
    said = capsys.readouterr()
    assert "queue_1: done: all lines were run" in said.out
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
    with held(run.site.tier.lock("queue_1")) as agent:
        threading.Timer(0.4, _end, (run, agent)).start()
        assert watch(run.project, interval_s=0.05) == 0
    lines = capsys.readouterr().out.splitlines()
    wanted = [
        "queue_1: running: works on a",
        "a: running, attempt 1",
        "a: verified, attempt 1",
        "queue_1: done: all lines were run",
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


def test_watch_with_json_is_a_document_in_each_line_and_the_last_is_final(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.site.tier.lock("queue_1")) as agent:
        threading.Timer(0.4, _end, (run, agent)).start()
        assert watch(run.project, interval_s=0.05, as_json=True) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(told) >= 2
    assert {one["format"] for one in told} == {"boxcar.watch/1"}
    assert [one.get("final", False) for one in told] == [*[False] * (len(told) - 1), True]
    assert told[0]["cells"][0]["state"] == "running"
    assert told[-1]["cells"][0]["state"] == "verified"


def test_interrupted_watch_says_that_the_run_goes_on(run, capsys):
    with held(run.site.tier.lock("queue_1")):
        threading.Timer(0.4, _thread.interrupt_main).start()
        assert watch(run.project, interval_s=0.05) == 130
    assert "The run continues" in capsys.readouterr().err


def test_on_a_terminal_without_keys_the_board_is_drawn_at_the_end_and_names_stay_inert(
    tmp_path, monkeypatch
):
    run = make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3"]})
    text = "\x1b]0;title\x07"
    warning = {"what": "[red]w", "text": text}
    run.say("queue_1", agent_started(), ("box.warning", warning), queue_done())
    master, slave = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        assert watch(run.project) == 0
        terminal.flush()
        os.set_blocking(master, False)
        data = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(master, 100_000):
                data += part
        drawn = data.decode()
    os.close(master)
    assert "· local ·" in drawn
    assert "\\x1b]0;title" in drawn
    assert "\x1b]0;title" not in drawn


def test_only_what_changed_is_said(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    before = run.look()
    assert changes(before, run.look(in_s=5)) == []
    run.say("queue_1", ("box.warning", {"what": "w", "text": "the disk fills up"}))
    assert changes(before, run.look()) == ["queue_1: warning: the disk fills up"]
    run.say("queue_1", cell_started("a", attempt=2))
    assert "a: broken off, attempt 2" in changes(before, run.look())


def test_what_is_undelivered_is_counted_by_the_slowest_endpoint(run):
    private = ("cell.claimed", {"cell": "a"})
    run.say("queue_1", agent_started(), private, cell_started("a"), queue_done())
    queue = run.look().queue("queue_1")
    assert undelivered.count_unsent(queue.events, Delivered({})) == 3
    assert undelivered.count_unsent(queue.events, Delivered({"x": Cursor(4), "y": Cursor(1)})) == 2
    assert (
        undelivered.count_unsent(queue.events, Delivered({"x": Cursor(4), "y": Cursor(1, "410")}))
        == 0
    )
    assert undelivered.count_unsent(queue.events, Delivered({"x": Cursor(0, "410")})) == 0


def test_watch_delivers_what_the_agent_could_not(run, receiver, capsys):
    url, came = receiver
    write_cursor(run, {ended(run, url): Cursor(1)})
    assert watch(run.project) == 0
    assert came == ["cell.verified", "queue.done"]
    said = capsys.readouterr()
    assert "queue_1: 2 late webhooks delivered" in said.err
    assert SECRET not in said.out + said.err


def test_watch_delivers_nothing_twice_and_nothing_beside_an_agent(run, receiver, capsys):
    url, came = receiver
    endpoint = ended(run, url)
    write_cursor(run, {endpoint: Cursor(3)})
    watch(run.project)
    assert came == []
    write_cursor(run, {endpoint: Cursor(1)})
    with held(run.site.tier.lock("queue_1")):
        threading.Timer(0.4, _thread.interrupt_main).start()
        assert watch(run.project, interval_s=0.05) == 130
    assert came == []
    assert "late webhook" not in capsys.readouterr().err


def test_a_queue_that_ended_is_delivered_once_while_another_goes_on(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    ended(run, "http://127.0.0.1:1/")
    asked = []
    monkeypatch.setattr(
        LocalSite, "ask", lambda *words, **more: asked.append(words) or news_asks.Delivered(0)
    )
    run.say("queue_2", agent_started(), cell_started("c"))
    with held(run.site.tier.lock("queue_2")) as other:
        threading.Timer(0.5, other.stdin.close).start()
        watch(run.project, interval_s=0.05)
    assert [(box, question.queue) for _, box, question in asked] == [("box-a", "queue_1")]
    assert isinstance(asked[0][2], news_asks.Deliver)


def test_a_run_that_nobody_wanted_webhooks_of_says_nothing_of_them(run, capsys):
    ended(run, "http://127.0.0.1:1/")
    Path(run.project.plan.box("box-a").credentials).unlink()
    assert watch(run.project) == 0
    assert "webhook" not in capsys.readouterr().err


def test_after_the_teardown_nothing_waits_to_be_delivered(run, monkeypatch, capsys):
    ended(run, "http://127.0.0.1:1/")
    now = "2026-11-22T10:00:00.000Z"
    over = Teardown("run", "0" * 64, "remove", now, "typed", finished_at=now)
    atomic.make_folder(run.project.results.root)
    atomic.write_whole(run.project.results.teardown, codec.to_document(over))
    shutil.copytree(run.site.tier.journals, run.project.results.journals)
    shutil.rmtree(run.site.tier.root)
    monkeypatch.setattr(LocalSite, "ask", lambda *words, **more: pytest.fail("a box was asked"))
    watch(run.project)
    assert "webhook" not in capsys.readouterr().err


def test_what_is_still_due_is_said_and_watch_ends_as_it_would(run, monkeypatch, capsys):
    write_cursor(run, {ended(run, "http://127.0.0.1:1/"): Cursor(1)})
    monkeypatch.setattr(LocalSite, "ask", lambda *words, **more: news_asks.Delivered(2))
    assert watch(run.project) == 0
    said = capsys.readouterr().err
    assert "could not be delivered: 2 events not delivered yet" in said
    assert "They are kept in the event log. Try again: invoke watch" in said


def test_a_delivery_that_hangs_is_ended(run, capsys, monkeypatch):
    monkeypatch.setattr(watch_module, "DELIVER_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        ended(run, f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        assert watch(run.project) == 0
    assert "no answer to" in capsys.readouterr().err


def test_a_release_that_is_gone_or_damaged_is_said(run, capsys):
    ended(run, "http://127.0.0.1:1/")
    [folder] = run.site.tier.releases.iterdir()
    (folder / PLAN).write_text("{}")
    assert watch(run.project) == 0
    said = capsys.readouterr().err
    assert "could not be delivered: box-a: " in said
    assert PLAN in said


def test_one_look_says_only_what_is_new(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    assert watch(run.project, is_once=True) == 1, "a dead agent"
    assert "queue_1: agent dead" in capsys.readouterr().out
    assert watch(run.project, is_once=True) == 1
    said = capsys.readouterr()
    assert said.out + said.err == "", "cron would mail every word"
    run.say("queue_1", cell_verified("a"), queue_done())
    assert watch(run.project, is_once=True, as_json=True) == 0
    said = capsys.readouterr()
    assert "queue_1: done" in said.err
    assert "agent dead" not in said.err
    assert json.loads(said.out)["queues"][0]["condition"] == "done"


def test_one_look_delivers_no_webhooks_and_does_not_wait(run, receiver, capsys):
    url, came = receiver
    ended(run, url)
    with held(run.site.tier.lock("queue_1")):
        assert watch(run.project, is_once=True) == 0
    assert came == []


def test_the_pause_between_two_looks_suits_the_way_to_the_boxes(run, monkeypatch):
    paused = []

    def pause(seconds):
        paused.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(watch_module.time, "sleep", pause)
    with held(run.site.tier.lock("queue_1")):
        assert watch(run.project) == 130
        assert watch(run.project, interval_s=7.0) == 130
    assert paused == [LocalSite.poll_s, 7.0]
    assert SshSite.poll_s > LocalSite.poll_s


def test_results_that_no_tier_keeps_are_pulled_as_they_are_published(tmp_path):
    run = make_finished_run(tmp_path, ("a", "b"))
    project = replace(run.project, plan=replace(run.project.plan, durable_scope=EACH_BOX))
    receipt = CellReceipt("tiny", "a", 1, "cd" * 32, from_now(0), ())
    atomic.write_whole(project.on_tier.receipt("a"), codec.to_document(receipt))
    assert watch(project) in (0, 1)
    assert run.here("a", "weights.dat").read_bytes() == WEIGHTS
    assert not run.here("b", "weights.dat").exists(), "b is published, and not verified yet"
    assert not project.results.receipt.exists()
