"""The zipapp as the laptop starts it: one request in, one marked line out."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import BoxcarError, DamagedError, InputError
from boxcar.shared.wire import envelope, run_asks
from boxcar.shared.wire.all_questions import QUESTIONS
from onbox.answers import door

SECRET = "s3cr3t-0123456789"


class LostError(DamagedError):
    """Of a module's own; the laptop has never heard of it."""


@pytest.fixture(params=["3.10", "3.12"])
def python(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, installed)):
        # A pyenv shim is on the PATH also where that version is not selected.
        words = [found or "false", "-I", "-S", "-c", ""]
        if not subprocess.run(words, capture_output=True, check=False).returncode:
            return str(found)
    return pytest.skip(f"no Python {version} runs on this machine")


@pytest.fixture(scope="session")
def pyz(archives: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("a box") / archives.onbox
    path.write_bytes(archives.files[archives.onbox])
    return path


def asked(
    words: Sequence[str], data: bytes, cwd: Path
) -> tuple[dict[str, Any], subprocess.CompletedProcess[bytes]]:
    done = subprocess.run(
        [*words, "answer"], input=data, capture_output=True, check=False, cwd=cwd, env={}
    )
    assert done.stdout.startswith(envelope.MARK), done.stderr
    assert done.stdout.count(b"\n") == 1
    found = json.loads(done.stdout[len(envelope.MARK) :])
    assert isinstance(found, dict)
    return found, done


def request(root: Path, ask: str, **words: Any) -> bytes:
    places = {"run": "tiny", "durable_dir": str(root / "tier"), "data_dir": str(root / "box")}
    return json.dumps({"ask": ask, **places, **words}).encode()


def error_of(data: bytes) -> tuple[str, str]:
    told = door.answer(data)["error"]
    return told["kind"], told["text"]


def test_every_python_of_a_box_answers_in_one_line_and_says_nothing_else(python, pyz, tmp_path):
    words = [python, "-I", "-S", "-W", "error", str(pyz)]
    document = {"want": "drain", "at": "2026-11-21T03:27:43.973Z"}
    data = request(tmp_path, "control", queue="q1", document=document)
    found, done = asked(words, data, tmp_path)
    assert (found, done.stderr, done.returncode) == ({"wire": 1}, b"", 0)
    data = request(tmp_path, "report", queues=["q1"], everything=True, have={})
    found, done = asked(words, data, tmp_path)
    assert (done.stderr, done.returncode) == (b"", 0)
    assert [file["path"] for file in found["files"]] == ["control/q1.json"]


def test_what_goes_wrong_is_an_answer_too(pyz, tmp_path):
    words = [sys.executable, "-I", "-S", str(pyz)]
    found, done = asked(words, request(tmp_path, "log", cell="../x"), tmp_path)
    assert found["error"]["kind"] == "InputError"
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("data", [b"", f'"{SECRET}'.encode(), b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused_without_a_word_of_it(data):
    assert error_of(data) == ("InputError", "the question is not a JSON document")


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"ask": 1}', b'{"ask": "reboot"}'])
def test_what_is_no_question_is_refused(data):
    assert error_of(data)[0] == "InputError"


@pytest.mark.parametrize("question", QUESTIONS.values())
def test_every_question_has_somebody_who_answers(question):
    assert callable(importlib.import_module(door.MODULES[question]).answer)
    assert set(door.MODULES) == set(QUESTIONS.values())


@pytest.mark.parametrize("words", [{"run": "../x"}, {"durable_dir": "x"}, {"data_dir": "~root"}])
def test_a_place_that_is_none_is_refused(tmp_path, words):
    data = request(tmp_path, "report", queues=[], everything=True, have={}, **words)
    assert error_of(data)[0] in ("InputError", "DamagedError")


def raising(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    module = types.ModuleType("raising")

    def raise_it(*words: object) -> object:
        raise error

    monkeypatch.setattr(module, "answer", raise_it, raising=False)
    monkeypatch.setitem(sys.modules, "raising", module)
    monkeypatch.setitem(door.MODULES, run_asks.FindRelease, "raising")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError(["one", "two"]), ("InputError", "one\ntwo")),
        (LostError("gone"), ("DamagedError", "gone")),
        (BoxcarError("odd"), ("BoxcarError", "odd")),
        (PermissionError(13, "Permission denied", "/x"), ("BoxcarError", "/x: Permission denied")),
        (OSError(28, "No space left", "/x"), ("NoRoomError", "/x: No space left")),
        (OSError("odd"), ("BoxcarError", "odd")),
    ],
)
def test_an_error_comes_as_the_kind_that_the_laptop_knows(monkeypatch, tmp_path, error, told):
    raising(monkeypatch, error)
    assert error_of(request(tmp_path, "release", digest="ab" * 32)) == told


def test_a_full_tier_is_told_as_one(small_tier, pyz, tmp_path):
    words = [*small_tier.enter, sys.executable, "-I", "-S", str(pyz)]
    document = {"want": "drain", "at": "x" * 2_000_000}
    data = request(tmp_path, "control", queue="q1", document={"want": "run", "at": ""})
    assert asked(words, data, tmp_path)[0] == {"wire": 1}
    small_tier.fill(1_000_000)
    data = request(tmp_path, "control", queue="q1", document=document)
    told = asked(words, data, tmp_path)[0]["error"]
    assert told["kind"] == "NoRoomError"
    assert "control/q1.json" in told["text"]


def test_what_is_printed_meanwhile_does_not_come_between(monkeypatch, capfd, tmp_path):
    module = types.ModuleType("talking")

    def talk(*words: object) -> dict[str, Any]:
        os.write(1, b"a word\n")
        subprocess.run(["echo", "a child's word"], check=True)
        return {"loss": float("nan"), "name": "\udcff"}

    monkeypatch.setattr(module, "answer", talk, raising=False)
    monkeypatch.setitem(sys.modules, "talking", module)
    monkeypatch.setitem(door.MODULES, run_asks.FindRelease, "talking")
    path = tmp_path / "question"
    path.write_bytes(request(tmp_path, "release", digest="ab" * 32))
    stdout = os.dup(1)
    try:
        with path.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert door.run() == 0
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
    said = capfd.readouterr()
    assert said.out == 'BOXCAR-ANSWER {"wire": 1, "loss": "nan", "name": "\\udcff"}\n'
    assert "a word" in said.err and "a child's word" in said.err


def _answered(tmp_path, lines, *, env=None):
    """By the program, whose stdin stays open."""
    code = "from onbox.answers import door; door.IDLE_S = 0.3; door.run()"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=-1, stdout=-1, cwd=Path(__file__).parents[3]) as process:
        for line in lines:
            process.stdin.write(line)
            process.stdin.flush()
        return process.stdout.read().splitlines()


def test_questions_are_answered_one_after_the_other_until_none_comes(tmp_path):
    one = request(tmp_path, "release", digest="ab" * 32).strip() + b"\n"
    told = _answered(tmp_path, [one, b"no question\n", one])
    assert [line.startswith(b"BOXCAR-ANSWER ") for line in told] == [True] * 3
    assert ["error" in json.loads(line.partition(b" ")[2]) for line in told] == [False, True, False]


def test_a_question_in_pieces_is_one(tmp_path):
    one = request(tmp_path, "release", digest="ab" * 32).strip() + b"\n"
    [told] = _answered(tmp_path, [one[:9], one[9:]])
    assert b"is_there" in told
