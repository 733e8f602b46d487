from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from boxcar.laptop.triage.log_file import MOST_BYTES
from boxcar.laptop.verbs.triage import triage as verb
from boxcar.shared.errors import InputError

LOG = "epoch 1\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'lr'\n"


def triage(log: str, **more) -> int:
    return verb(log, **{"root": Path(log).parent if log != "-" else Path("/none")} | more)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


def test_a_log_is_judged_without_a_run(log: Path, capsys) -> None:
    assert triage(str(log)) == 0
    said = capsys.readouterr().out
    assert said.startswith("FIX_CODE (PY-KEY): a key or column is missing\n")
    assert "  line 4 of the log: KeyError: 'lr'\n" in said


def test_in_chinese_for_whoever_reads_chinese(log: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert triage(str(log)) == 0
    assert "缺少键或列" in capsys.readouterr().out


def test_json_has_the_class_and_the_place(log: Path, capsys) -> None:
    assert triage(str(log), as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["class"]) == ("PY-KEY", "FIX_CODE")
    assert found["evidence"] == [{"line": 4, "text": "KeyError: 'lr'"}]
    assert found["type"].startswith("invoke smoke")


def test_stdin_and_an_exit_code_are_taken(capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"step 3\n")))
    assert triage("-", rc=137) == 0
    assert capsys.readouterr().out.startswith("RESUME_SAME (137-N)")


def test_a_log_that_says_nothing_ends_with_1(log: Path, capsys) -> None:
    log.write_text("all is well\n")
    assert triage(str(log)) == 1
    assert capsys.readouterr().out.startswith("ASK (?): unknown: no known failure matches")


def test_an_empty_log_is_said_unless_its_exit_code_tells(log: Path, capsys) -> None:
    log.write_text("\n")
    with pytest.raises(InputError, match="is empty"):
        triage(str(log))
    assert triage(str(log), rc=139) == 0
    assert capsys.readouterr().out.startswith("RESUME_SAME (SEGV)")


def test_of_a_large_log_the_end_is_read_and_its_lines_are_counted(log: Path, capsys) -> None:
    log.write_text("x" * 99 + "\n")
    with log.open("a") as file:
        file.writelines("y" * 99 + "\n" for _ in range(MOST_BYTES // 100))
        file.write(LOG)
    assert triage(str(log), as_json=True) == 0
    line = json.loads(capsys.readouterr().out)["evidence"][0]["line"]
    assert line == 1 + MOST_BYTES // 100 + 4


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        triage(str(tmp_path / "nope"))


OWN = """signatures:
  - id: MINE
    follows: WAIT_NETWORK
    pattern: 'KeyError: .lr.'
    words: the config store was away
    todo: nothing
"""


def test_a_persons_own_signatures_come_first(log: Path, capsys) -> None:
    (log.parent / "failures.yaml").write_text(OWN)
    assert triage(str(log)) == 0
    said = capsys.readouterr().out
    assert said.startswith("WAIT_NETWORK (MINE): the config store was away: KeyError: 'lr'\n")
    assert "  line 4 of the log: KeyError: 'lr'\n" in said


def test_a_row_is_written_from_a_log_and_known_again(log: Path, capsys) -> None:
    log.write_text(LOG.replace("KeyError: 'lr'", "store.Locked: shard 17 at 0x7f2a is 'held'"))
    for number in (1, 2):
        assert triage(str(log), add=True) == 0
        assert f"id: OWN-{number}" in capsys.readouterr().out
    log.write_text("step 1\nstore.Locked: shard 4 at 0x11 is 'held'\n")
    assert triage(str(log)) == 0
    assert capsys.readouterr().out.startswith("FIX_CODE (OWN-1)")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (OWN.replace("MINE", "M2"), "Boxcar's own"),
        (OWN.replace("MINE", "mine"), "capital letters"),
        (OWN.replace("KeyError: .lr.", "("), "not a regular expression"),
        (OWN.replace("WAIT_NETWORK", "PRAY"), "follows"),
        (OWN + OWN.removeprefix("signatures:\n"), "used twice"),
        (OWN.replace("KeyError", "K" * 500), "characters"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused_with_its_line(log, text, what) -> None:
    (log.parent / "failures.yaml").write_text(text)
    with pytest.raises(InputError, match=what):
        triage(str(log))
