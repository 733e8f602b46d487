from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.answers import door, log_slice


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    return DurablePaths(tmp_path / "tier", "tiny")


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    return ScratchPaths(tmp_path / "box", "tiny")


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def ask(tmp_path: Path, **words: Any) -> dict[str, Any]:
    places = {"durable_dir": str(tmp_path / "tier"), "data_dir": str(tmp_path / "box")}
    asked = {"ask": "log", "run": "tiny", "offset": None, "lines": 2, "most_bytes": 1000}
    what = words if {"cell", "queue"} & set(words) else {"cell": "a"} | words
    told = door.answer(json.dumps(asked | places | what).encode())
    return told | {"data": base64.b64decode(told["data"])} if "data" in told else told


def test_the_last_lines_come_with_what_is_unfinished(tmp_path, scratch):
    write(scratch.log("a"), b"1\n2\n3\n4")
    assert ask(tmp_path) == {
        **{"is_there": True, "data": b"2\n3\n4", "offset": 7, "size_bytes": 7, "is_held": False}
    }
    assert ask(tmp_path, lines=0)["data"] == b"4"
    assert ask(tmp_path, lines=100)["data"] == b"1\n2\n3\n4"


def test_a_line_without_end_is_cut(tmp_path, scratch):
    write(scratch.log("a"), b"x" * 5000 + b"y" * 10)
    found = ask(tmp_path, most_bytes=12)
    assert (found["data"], found["offset"]) == (b"xx" + b"y" * 10, 5010)


def test_slices_follow_one_another_and_nothing_is_lost(tmp_path, scratch):
    data = os.urandom(2500)
    write(scratch.log("a"), data)
    seen, offset = b"", 0
    while found := ask(tmp_path, offset=offset):
        seen, offset = seen + found["data"], found["offset"]
        if not found["data"]:
            break
    assert seen == data
    assert offset == 2500


def test_a_log_that_was_replaced_begins_anew(tmp_path, scratch):
    write(scratch.log("a"), b"new")
    assert ask(tmp_path, offset=4)["data"] == b"new"
    assert ask(tmp_path, offset=3)["data"] == b""


def test_one_answer_holds_no_more_than_it_may(tmp_path, scratch, monkeypatch):
    monkeypatch.setattr(log_slice, "MOST_BYTES", 10)
    write(scratch.log("a"), b"x" * 50)
    assert len(ask(tmp_path, most_bytes=10**9)["data"]) == 10
    assert len(ask(tmp_path, most_bytes=10**9, offset=0)["data"]) == 10


def test_after_the_scratch_was_lost_the_published_log_goes_on(tmp_path, tier, scratch):
    write(tier.cell("a") / "a.log", b"published")
    assert ask(tmp_path, offset=2)["data"] == b"blished"
    write(scratch.log("a"), b"live")
    assert ask(tmp_path)["data"] == b"live"


def test_the_agent_has_a_log_of_its_own(tmp_path, tier, scratch):
    write(scratch.agent_log("q1"), b"started\n")
    write(tier.lock("q1"), b"")
    found = ask(tmp_path, queue="q1")
    assert (found["data"], found["is_held"]) == (b"started\n", False)
    fd = lock.try_hold(tier.lock("q1"))
    assert fd is not None
    assert ask(tmp_path, queue="q1")["is_held"]
    os.close(fd)


def test_it_is_told_whether_the_attempt_lives(tmp_path, scratch):
    write(scratch.log("a"), b"")
    fd = lock.try_hold(scratch.log("a"))
    assert fd is not None
    assert ask(tmp_path)["is_held"]
    os.close(fd)


def test_no_log_yet_is_said(tmp_path):
    expected = {"is_there": False, "data": b"", "offset": 0, "size_bytes": 0, "is_held": False}
    assert ask(tmp_path) == ask(tmp_path, queue="q1", offset=7) == expected


def test_a_link_shows_no_other_file(tmp_path, tier, scratch):
    write(tmp_path / "secret" / "a.log", b"not yours")
    for path in (scratch.cell("a"), tier.cell("a")):
        path.parent.mkdir(parents=True)
        path.symlink_to(tmp_path / "secret")
    scratch.agent_log("q1").symlink_to(tmp_path / "secret" / "a.log")
    assert not ask(tmp_path)["is_there"]
    assert not ask(tmp_path, queue="q1")["is_there"]


def test_for_others_eyes_it_has_no_value_of_the_boxs_secrets(tmp_path, scratch):
    """Also where a library paints a part of it, and where the first line is cut inside it."""
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"env": {"HF_TOKEN": "hf_correcthorse"}}))
    file.chmod(0o600)
    write(
        scratch.log("a"), b"x hf_correcthorse\ntoken hf_\x1b[1;36mcorrect\x1b[0mhorse \xff\nend\n"
    )
    found = ask(tmp_path, lines=50, credentials=str(file))
    assert (found["data"], found["is_clean"]) == (
        "x […]\ntoken […] ".encode() + b"\xff\nend\n",
        True,
    )
    cut = ask(tmp_path, lines=50, most_bytes=50, credentials=str(file))
    assert cut["data"] == "token […] ".encode() + b"\xff\nend\n", "no rest of a value"
    file.unlink()
    found = ask(tmp_path, lines=50, credentials=str(file))
    assert b"correcthorse" in found["data"] and "is_clean" not in found, "who asks is told"


@pytest.mark.parametrize(
    "words",
    [
        {"offset": 0, "credentials": "/c.json"},
        *({"cell": "../a"}, {"queue": "a/b"}, {"cell": "a", "queue": "q"}, {"offset": -1}),
        *({"offset": "0"}, {"lines": None}, {"most_bytes": -1}),
    ],
)
def test_what_is_no_question_is_refused(tmp_path, scratch, words):
    write(scratch.log("a"), b"1\n")
    assert ask(tmp_path, **words)["error"]["kind"] == "InputError"
