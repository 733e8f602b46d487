"""Data from a URL: the box fetches it itself, once, before its first cell, or says why not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until
from web_server import Web, web_server

from boxcar.shared.disk import digest
from boxcar.shared.files import fetched_data
from boxcar.shared.files.heartbeat import read_heartbeat
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.paths import DataPaths
from boxcar.shared.process import exit_codes

CONTENT = os.urandom(300_000)


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        server.files["burgers.h5"] = CONTENT
        yield server


def wanted(web: Web, path: str = "ranges/burgers.h5", **more: object) -> tuple[DataUrl, ...]:
    return (DataUrl("pde", web.url(path), **more),)


def linked(run, box: str = "box-a") -> Path:
    return run.scratch(box).data_of(run.release.name) / "pde"


def store(run, box: str = "box-a") -> DataPaths:
    return DataPaths(run.scratch(box).data_dir)


def test_it_is_there_before_the_first_cell_and_fetched_once_a_box(make_run, web):
    run = make_run({"a": {}, "b": {}}, data_urls=wanted(web))
    assert run.finish() == 0
    assert (linked(run) / "burgers.h5").read_bytes() == CONTENT
    types = [event.type for event in run.events()]
    assert types.index("data.fetched") < types.index("cell.started")
    (fetched,) = run.events("data.fetched")
    assert fetched.data["sha256"] == digest.of_bytes(CONTENT)
    assert json.loads((run.out("a") / "environment.json").read_text())["BOXCAR_DATA"]
    sent = web.sent_bytes
    run.append("configs/a.json count 3 name=c")
    assert run.finish() == 0
    assert web.sent_bytes == sent
    assert not list(store(run).root.glob("urls/*/come")), "nothing is kept twice"


def test_a_damaged_download_is_refused_and_nothing_is_taken(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web, sha256="0" * 64))
    assert run.finish() == exit_codes.STOP_QUEUE
    (stopped,) = run.events("queue.stopped")
    assert stopped.data["reason"].startswith("SETUP: data pde cannot be fetched on box-a: ")
    assert "expected " + "0" * 64 in stopped.data["reason"]
    assert not run.events("cell.started")
    assert not list(store(run).root.glob("*/proof.json"))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("404/burgers.h5", "not there"),
        ("secret/burgers.h5", "refused (HTTP 403"),
        ("page/burgers.h5", "a web page came where a file was asked"),
        ("login/burgers.h5", "a web page came where a file was asked"),
    ],
)
def test_what_the_server_refuses_stops_the_queue_with_one_sentence(make_run, web, path, why):
    run = make_run({"a": {}}, data_urls=wanted(web, path))
    assert run.finish() == exit_codes.STOP_QUEUE
    (stopped,) = run.events("queue.stopped")
    assert why in stopped.data["reason"] and "\n" not in stopped.data["reason"]
    assert not run.events("cell.started")


def test_a_token_is_a_secret_by_its_name(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web, "secret/burgers.h5", token="HF_TOKEN"))
    file = Path(run.plan.box("box-a").credentials)
    file.write_text(json.dumps({"env": {"HF_TOKEN": "hf_x"}}))
    file.chmod(0o600)
    assert run.finish() == 0
    assert (linked(run) / "burgers.h5").read_bytes() == CONTENT
    for path in (run.durable.root, store(run).root):
        for one in path.rglob("*"):
            assert not one.is_file() or b"hf_x" not in one.read_bytes(), one


def test_an_agent_that_is_killed_leaves_the_fetching_to_go_on_and_the_next_one_waits(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web, "slow/burgers.h5"))
    agent = run.start()
    until(lambda: web.sent_bytes > 1 << 16, "the fetching has begun")
    agent.kill()
    agent.wait()
    asked = len(web.asked)
    again = run.start()
    beat = run.durable.heartbeat("q1")
    until(lambda: (now := read_heartbeat(beat)) and now.pid == again.pid and now.fetching)
    assert len(web.asked) == asked, "it does not ask beside the first"
    web.let_go.set()
    assert again.wait() == 0
    assert (linked(run) / "burgers.h5").read_bytes() == CONTENT


def test_a_stop_ends_the_fetching_and_the_next_launch_goes_on(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web, "slow/burgers.h5"))
    agent = run.start()
    until(lambda: web.sent_bytes > 1 << 16, "the fetching has begun")
    run.ask("stop")
    assert agent.wait() in (0, exit_codes.PREEMPTED)
    web.let_go.set()
    assert not list(store(run).root.glob("*/proof.json"))
    run.ask("run")
    assert run.finish() == 0
    assert (linked(run) / "burgers.h5").read_bytes() == CONTENT


def test_two_queues_on_a_tier_fetch_it_once(make_run, web):
    urls = wanted(web, "slow/burgers.h5")
    run = make_run({"a": {}}, data_urls=urls, is_data_on_tier=True)
    run.append("configs/a.json count 3 name=b", queue="q2")
    agents = [run.start("q1"), run.start("q2")]
    until(lambda: web.sent_bytes > 1 << 16, "the fetching has begun")
    web.let_go.set()
    assert [agent.wait() for agent in agents] == [0, 0]
    fetched = [*run.events("data.fetched"), *run.events("data.fetched", queue="q2")]
    assert len(fetched) == 1
    assert web.sent_bytes < 2 * len(CONTENT)


def test_a_later_box_that_gets_another_file_trains_on_nothing(make_run, web):
    run = make_run({"a": {}, "b": {}}, data_urls=wanted(web))
    assert run.finish() == 0
    web.files["burgers.h5"] = os.urandom(len(CONTENT))
    run.append("configs/b.json count 3 name=c", queue="q2")
    assert run.finish("q2") == exit_codes.STOP_QUEUE
    (stopped,) = run.events("queue.stopped", queue="q2")
    assert "pde on box-b is another file" in stopped.data["reason"]
    assert not run.events("cell.started", queue="q2")


def test_what_was_removed_is_fetched_again(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web))
    assert run.finish() == 0
    shutil.rmtree(store(run).folder(fetched_data.find_data(store(run), wanted(web)[0]).digest))
    run.append("configs/a.json count 3 name=b")
    assert run.finish() == 0
    assert len(run.events("data.fetched")) == 2


def test_a_busy_server_is_asked_again(make_run, web):
    web.busy = 1
    run = make_run({"a": {}}, data_urls=wanted(web, "busy/burgers.h5"))
    assert run.finish() == 0
    (said,) = run.warnings("data_waits")
    assert "HTTP 503" in said and "tried again" in said


def test_an_archive_is_unpacked_where_the_person_says_so(make_run, web):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        member = tarfile.TarInfo("set/one.bin")
        member.size = 3
        made.addfile(member, io.BytesIO(b"one"))
    web.files["set.tar.gz"] = packed.getvalue()
    run = make_run({"a": {}}, data_urls=wanted(web, "ranges/set.tar.gz", unpack=True))
    assert run.finish() == 0
    assert (linked(run) / "set" / "one.bin").read_bytes() == b"one"
    assert not (linked(run) / "set.tar.gz").exists()


def test_a_child_that_is_killed_in_the_middle_is_started_again(make_run, web):
    run = make_run({"a": {}}, data_urls=wanted(web, "slow/burgers.h5"))
    agent = run.start()
    until(lambda: web.sent_bytes > 1 << 16, "the fetching has begun")
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_child = b"boxcar.training.fetch.to_store" in (folder / "cmdline").read_bytes()
            if is_child and os.fsencode(run.release) in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
    web.let_go.set()
    assert agent.wait() == 0
    assert "ended with -9" in run.warnings("data_waits")[0]
    assert (linked(run) / "burgers.h5").read_bytes() == CONTENT
