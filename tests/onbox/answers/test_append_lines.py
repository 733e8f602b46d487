from __future__ import annotations

import base64
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import Message
from boxcar.shared.files import codec
from onbox.answers import door

OLD, NEW = b"configs/a.yaml t\n", b"configs/b.yaml t\nconfigs/c.yaml t\n"


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    return tmp_path / "tier" / "boxcar" / "tiny" / "queues" / "q1.txt"


def append(
    tmp_path: Path, lines: bytes, seen: bytes | None, **words: Any
) -> dict[str, Any] | tuple[str, str]:
    expected = None if seen is None else [len(seen), digest.of_bytes(seen)]
    places = {"run": "tiny", "durable_dir": str(tmp_path / "tier"), "data_dir": str(tmp_path)}
    what = {"queue": "q1", "expected": expected, "data": base64.b64encode(lines).decode()}
    told = door.answer(json.dumps({"ask": "append", **places, **what, **words}).encode())
    if "error" not in told:
        return told
    error = dict(told["error"])
    return error.pop("kind"), str(codec.decode(Message, error, "error"))


def of(data: bytes) -> dict[str, Any]:
    return {"size_bytes": len(data), "sha256": digest.of_bytes(data)}


def write(queue: Path, data: bytes) -> None:
    queue.parent.mkdir(parents=True, exist_ok=True)
    queue.write_bytes(data)


def test_a_queue_that_was_not_there_is_made(tmp_path, queue):
    assert append(tmp_path, OLD, None) == of(OLD)
    assert queue.read_bytes() == OLD


def test_lines_go_behind_what_was_read(tmp_path, queue):
    write(queue, OLD)
    before = queue.stat().st_ino
    assert append(tmp_path, NEW, OLD) == of(OLD + NEW)
    assert (queue.read_bytes(), queue.stat().st_ino) == (OLD + NEW, before)


@pytest.mark.parametrize("seen", [OLD, None])
def test_done_twice_it_is_done_once(tmp_path, queue, seen):
    if seen:
        write(queue, seen)
    append(tmp_path, NEW, seen)
    assert append(tmp_path, NEW, seen) == of((seen or b"") + NEW)
    assert queue.read_bytes() == (seen or b"") + NEW


def test_what_a_killed_call_wrote_of_it_is_completed(tmp_path, queue):
    write(queue, OLD + NEW[:20])
    assert append(tmp_path, NEW, OLD) == of(OLD + NEW)


@pytest.mark.parametrize("seen", [OLD, None])
@pytest.mark.parametrize("now", [OLD + b"configs/x.yaml t\n", OLD + NEW + OLD, b"z", OLD[:-3]])
def test_what_somebody_else_did_meanwhile_is_refused_and_kept(tmp_path, queue, now, seen):
    write(queue, now)
    told = append(tmp_path, NEW, seen)
    assert isinstance(told, tuple)
    assert told[0] == "InputError"
    assert str(queue) in told[1] and "invoke push" in told[1]
    assert queue.read_bytes() == now


def test_of_several_who_append_at_once_one_does_and_the_others_are_refused(tmp_path, queue):
    write(queue, OLD)
    mine = [b"configs/%d.yaml t\n" % number for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda data: append(tmp_path, data, OLD), mine))
    assert [type(one) for one in told].count(dict) == 1
    assert queue.read_bytes() in [OLD + data for data in mine]


def test_while_another_appends_nobody_does(tmp_path, queue, monkeypatch):
    monkeypatch.setattr("onbox.answers.append_lines.LOCK_S", 0.1)
    write(queue, OLD)
    fd = lock.try_hold(queue)
    assert fd is not None
    told = append(tmp_path, NEW, OLD)
    assert isinstance(told, tuple)
    assert told[0] == "TemporaryError"
    os.close(fd)
    assert queue.read_bytes() == OLD
    assert append(tmp_path, NEW, OLD) == of(OLD + NEW)


def test_a_queue_that_vanished_does_not_come_back_without_its_beginning(tmp_path, queue):
    write(queue, OLD)
    queue.unlink()
    told = append(tmp_path, NEW, OLD)
    assert isinstance(told, tuple)
    assert str(queue) in told[1]
    assert not queue.exists()


@pytest.mark.parametrize("is_folder", [True, False])
def test_nothing_is_written_behind_a_link(tmp_path, queue, is_folder):
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "q1.txt", OLD)
    queue.parent.parent.mkdir(parents=True)
    if is_folder:
        queue.parent.symlink_to(elsewhere)
    else:
        queue.parent.mkdir()
        queue.symlink_to(elsewhere / "q1.txt")
    told = append(tmp_path, NEW, OLD)
    assert isinstance(told, tuple)
    assert told[0] == "InputError"
    assert (elsewhere / "q1.txt").read_bytes() == OLD


@pytest.mark.parametrize("words", [{"queue": "../x"}, {"data": "?"}, {"expected": [1]}])
def test_what_is_no_request_touches_nothing(tmp_path, words):
    told = append(tmp_path, NEW, None, **words)
    assert isinstance(told, tuple)
    assert told[0] == "InputError"
    assert list(tmp_path.iterdir()) == []
