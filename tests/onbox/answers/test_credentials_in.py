from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.laptop.common import home
from boxcar.shared.disk import atomic, lock
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import door, try_second_home
from onbox.machine import credentials

SECRET = "s3cr3t-0123456789"
WEBHOOK = {"url": f"https://x.org/{SECRET}", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
RECORD = {"env": {"WANDB_API_KEY": SECRET, "A": "b"}, "webhooks": [WEBHOOK]}


def ask(tmp_path: Path, record: Any = RECORD, path: Path | str | None = None) -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": str(tmp_path / "tier"), "data_dir": str(tmp_path)}
    where = path or tmp_path / "own" / "credentials.json"
    words = {"ask": "credentials", **places, "path": str(where), "record": record}
    told = door.answer(json.dumps(words).encode())
    assert SECRET not in json.dumps(told)
    return told


def test_they_are_for_their_owner_alone_and_read_back(tmp_path):
    before = os.umask(0)
    try:
        assert ask(tmp_path) == {"names": ["A", "WANDB_API_KEY"]}
    finally:
        os.umask(before)
    path = tmp_path / "own" / "credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    found = credentials.read(path)
    assert found.env["WANDB_API_KEY"] == SECRET
    assert found.webhooks[0].url == WEBHOOK["url"]


def test_they_replace_what_was_there_and_what_a_killed_call_left(tmp_path):
    ask(tmp_path)
    path = tmp_path / "own" / "credentials.json"
    left = path.with_name(f".{path.name}.0a0a0a0a.part")
    left.write_text(SECRET)
    other = path.with_name(".others.json.0a0a0a0a.part")
    other.touch()
    assert ask(tmp_path, {"env": {}, "webhooks": []}) == {"names": []}
    assert SECRET not in path.read_text()
    assert not left.exists() and other.exists()


def test_of_two_at_once_none_removes_what_the_other_writes(tmp_path, monkeypatch):
    """As where all queues of a cluster have one home, and are served side by side."""
    write, take = atomic.write_whole, lock.try_stand_in
    waits = threading.Event()
    others: list[Future[dict[str, Any]]] = []

    def taken(path: Path) -> int | None:
        fd = take(path)
        if fd is None:
            waits.set()
        return fd

    def written(path: Path, data: bytes, **how: Any) -> None:
        if not others:
            part = path.with_name(f".{path.name}.0a0a0a0a.part")
            part.touch()
            others.append(executor.submit(ask, tmp_path))
            until(lambda: waits.is_set() or others[0].done(), lambda: "the other one")
            part.unlink()  # FileNotFoundError, were it removed meanwhile
        write(path, data, **how)

    monkeypatch.setattr(lock, "try_stand_in", taken)
    monkeypatch.setattr(atomic, "write_whole", written)
    with ThreadPoolExecutor(1) as executor:
        assert ask(tmp_path) == others[0].result() == {"names": ["A", "WANDB_API_KEY"]}


def test_a_path_may_begin_at_the_boxs_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "a home"))
    ask(tmp_path, path="~/.boxcar/tiny.json")
    assert (tmp_path / "a home" / ".boxcar" / "tiny.json").is_file()


@pytest.mark.parametrize(
    "record",
    [None, [], {"env": [SECRET]}, {"env": {"A=B": SECRET}}, {"webhooks": [{"url": SECRET}]}],
)
def test_a_record_that_is_none_is_refused_and_does_not_stay(tmp_path, record):
    assert ask(tmp_path, record)["error"]["kind"] in ("InputError", "DamagedError")
    assert not (tmp_path / "own" / "credentials.json").exists()


def test_no_secret_goes_to_the_durable_tier(tmp_path):
    (tmp_path / "tier").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "tier")
    for path in ("tier/credentials.json", "tier/own/c.json", "way/own/c.json", "x/../tier/c.json"):
        told = ask(tmp_path, path=tmp_path / path)
        assert told["error"]["kind"] == "InputError"
    assert list((tmp_path / "tier").iterdir()) == []


def test_no_secret_goes_behind_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "own").symlink_to(tmp_path / "elsewhere")
    assert ask(tmp_path)["error"]["kind"] == "InputError"
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- a second home is tried


RUN = RunOnBox("tiny", "/tier", "/data")


@pytest.fixture
def question(tmp_path: Path) -> box_asks.TrySecondHome:
    program = home.training_program("second_home")
    url = f"file://{tmp_path}/second"
    return box_asks.TrySecondHome(url, sys.executable, ":", program, {}, {"KEY": "s3cret"})


def test_a_place_that_takes_a_file_and_gives_it_back_has_no_problem(question, tmp_path):
    assert try_second_home.answer(question, RUN) == box_asks.SecondHomeTried()
    assert list((tmp_path / "second").iterdir()) == []


def test_what_is_wrong_is_a_sentence_without_a_secret(question, tmp_path):
    (tmp_path / "second").write_text("a file")
    problem = try_second_home.answer(question, RUN).problem
    assert problem and str(tmp_path / "second") in problem
    leaky = "import os; raise SystemExit('denied to ' + os.environ['KEY'])"
    assert "denied to …" in str(
        try_second_home.answer(replace(question, program=leaky), RUN).problem
    )
    assert "s3cret" not in repr(question)


def test_the_hook_runs_before_it_and_leaves_it_its_question(question, tmp_path):
    hook = f"export PLACE={tmp_path}; cat; echo noise"
    program = "import json, os, sys; assert os.environ['PLACE']; json.load(sys.stdin)\n"
    asked = replace(question, hook=hook, program=program + "print('{\"done\": {}}')")
    assert try_second_home.answer(asked, RUN) == box_asks.SecondHomeTried()
