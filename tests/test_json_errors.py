"""Each verb with `--json` and something wrong: one document on stdout that says what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from published_schemas import hold
from test_cli import typed
from test_frozen import VERBS

WITH_JSON = sorted(verb for verb, flags in VERBS.items() if "json" in flags.split())
JOB = """\
name: tiny
command: train.py --config {cfg} --out {out} --epochs {epochs}
launcher: python
artifacts: [metrics.json]
smoke: --limit 2
queues: {queue_1.txt: box-a}
"""
# Words that are wrong for this verb only, and a part of what is said of them.
BAD = {
    "audit": (["--box", "box-z"], "no box 'box-z'"),
    "board": ([], "board --serve"),
    "check-profiles": (["--job", "x"], "--job"),
    "cost": (["--job", "other.yaml"], "other.yaml"),
    "data": (["--remove", "abc"], "expected the beginning"),
    "down": (["--abandon", "nope", "--because", "x"], "no cell 'nope'"),
    "explain": (["--cell", "nope"], "no cell 'nope'"),
    "export": (["--to", "foo"], "found 'foo'"),
    "grid": (["configs/none.yaml", "lr=1"], "configs/none.yaml"),
    "launch": (["--start-index", "-1"], "--start-index"),
    "logs": (["--cell", "nope"], "no cell 'nope'"),
    "move": (["--cell", "a", "--queue", "nope"], "no queue 'nope'"),
    "notify": (["--test", "--only", "nope"], "nope"),
    "plan": (["--job", "other.yaml"], "other.yaml"),
    "pull": (["--cell", "nope"], "nothing to pull"),
    "push": (["--profile", "autodll"], "no profile 'autodll'"),
    "rehearse": (["--kills", "0"], "--kills"),
    "repair": (["--job", "other.yaml"], "other.yaml"),
    "report": (["--to", "foo"], "found 'foo'"),
    "runs": (["--everything"], "--everything"),
    "offers": (["--max-price", "x"], "--max-price"),
    "orphans": (["--everything"], "--everything"),
    "smoke": (["--cell", "nope"], "no cell 'nope'"),
    "split": (["--speed", "box-z=2"], "no box 'box-z'"),
    "status": (["--profile", "autodll"], "no profile 'autodll'"),
    "triage": (["none.log"], "none.log"),
    "verify": (["--allow-pickle", "nope"], "nope"),
    "watch": (["--every", "5x"], "'5x'"),
}


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text("lr: 1\n")
    (tmp_path / "train.py").write_text("import argparse\n")
    (tmp_path / "queue_1.txt").write_text("configs/a.yaml recon 2\n")
    (tmp_path / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The one document, held against its schema; it says the exit code, and stderr says the same
    to people."""
    code = typed(*words, "--json")
    shown = capsys.readouterr()
    document: dict[str, Any] = json.loads(shown.out)
    hold(document)
    assert document["format"] == "boxcar.error/1"
    assert (document["verb"], document["exit_code"]) == (words[0], code) and code != 0
    assert document["messages"] and "Traceback" not in shown.err
    for message in document["messages"]:
        assert message["text"].splitlines()[0] in shown.err
    return document


def test_the_wrong_words_are_of_every_verb_with_json() -> None:
    assert sorted(BAD) == WITH_JSON


@pytest.mark.parametrize("verb", WITH_JSON)
def test_a_mistake_of_its_own_is_a_document_with_its_reason(verb: str, capsys) -> None:
    words, reason = BAD[verb]
    assert reason in str(error_of(capsys, verb, *words)["messages"])


WRONG_FILES = {
    "job.yaml": ("launcher: pyton\nartefacts: [a]\n", "artifacts"),
    "queue_1.txt": ("configs/none.yaml recon 2\n", "configs/none.yaml"),
    "profiles/own.yaml": ("extends: ssh\nmetre: 1\n", "metre"),
}


@pytest.mark.parametrize("file", sorted(WRONG_FILES))
def test_a_file_with_a_mistake_is_named_with_its_line_and_what_to_type_then(
    file: str, capsys
) -> None:
    text, reason = WRONG_FILES[file]
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(text)
    profile = ["--profile", "own"] if file.startswith("profiles") else []
    *mistakes, last = error_of(capsys, "plan", *profile)["messages"]
    assert any(f"{file}:" in one["text"] and reason in one["text"] for one in mistakes)
    assert last == {"text": "Then check again", "command": "boxcar plan"}


NAMES = ["audit", "down", "explain", "logs", "move", "plan", "push", "smoke", "triage"]


@pytest.mark.parametrize("verb", NAMES)
def test_who_named_what_is_not_there_is_told_what_to_type(verb: str, capsys) -> None:
    assert error_of(capsys, verb, *BAD[verb][0])["messages"][-1]["command"]


SEEN = r"[a-z]+ [a-z]+ [a-z]+"  # words of English; names, files and flags are none


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--prfile", "x"],
        ["stattus"],
        ["logs"],
        ["plan", "--profile"],
        ["watch", "--every", "5x"],
        ["listen", "--port", "99999"],
        ["report", "--to", "foo"],
        ["split", "--speed", "box-z=2"],
        ["split", "--speed", "box-a"],
        ["smoke", "--cell", "nope"],
        ["plan", "--profile", "autodll"],
        ["grid", "configs/none.yaml", "lr=1"],
        ["triage", "none.log"],
    ],
)
def test_where_the_locale_is_chinese_an_ordinary_mistake_is_said_in_it(
    words: list[str], monkeypatch, capsys
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert typed(*words) == 2
    said = capsys.readouterr().err
    assert re.search("[\u4e00-\u9fff]", said) and not re.search(SEEN, said), said


@pytest.mark.parametrize("file", sorted(WRONG_FILES))
def test_a_mistake_in_a_file_is_said_in_chinese_too(file: str, monkeypatch, capsys) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(WRONG_FILES[file][0])
    assert typed("plan", *(["--profile", "own"] if file.startswith("profiles") else [])) == 2
    said = capsys.readouterr().err
    assert "改好之后再检查：" in said and not re.search(SEEN, said), said
