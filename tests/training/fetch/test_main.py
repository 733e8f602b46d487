"""The command line: what it says, and with which exit code it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import odd_sources
import pytest

from boxcar.training.fetch.__main__ import main

odd_sources.register()
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a_train.h5", "b_train.pt"):
        (tmp_path / name).write_bytes(name.encode())
    own = {"patterns": ["{task}_{split}.pt"], "splits": {"train": "required"}}
    spec = {"to": "data", "tasks": {"a": {}, "b": own}, "patterns": ["{task}_{split}.h5"]}
    (tmp_path / "data.json").write_text(json.dumps(spec))
    return tmp_path


def test_a_look_lists_what_is_where(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data.json", "--check"]) == 0
    said = capsys.readouterr().out
    assert "found     a train  10 B  a_train.h5" in said
    assert "optional  a val  not there; tried:\n  a_val.h5: not there" in said
    assert said.endswith("nothing required is missing; 20 B to fetch\n")
    assert not (at / "data").exists()


def test_a_look_that_misses_something_ends_with_1(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (at / "b_train.pt").unlink()
    assert main(["data.json", "--check"]) == 1
    assert "not found: b train\n  b_train.pt: not there" in capsys.readouterr().err


def test_the_files_come_and_are_named(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data.json", "--to", "here", "--task", "b"]) == 0
    assert capsys.readouterr().out == "b train: here/b_train.pt\n"
    assert not (at / "data").exists()


def test_flags_alone_will_do(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--to", "here", "--task", "a", "--split", "train", "--optional", "val"]
    assert main([*words, "--pattern", "gone_{task}_{split}", "--pattern", "{task}_{split}.h5"]) == 0
    assert capsys.readouterr().out == "a train: here/a_train.h5\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["data.json", "--task", "c"], 2, "no task c: the file has a, b"),
        (["gone.json"], 2, "gone.json: cannot be read"),
        ([], 2, 'the command line: "to" should be the folder'),
        (["data.json", "--sha256", "a_train.h5"], 2, "should be 64 digits"),
        (["data.json", "--sha256", f"a_train.h5={'0' * 64}"], 1, "nothing was kept"),
    ],
)
def test_what_is_wrong_ends_with_its_code(
    at: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(words) == code
    assert said in capsys.readouterr().err


def test_a_source_that_does_not_answer_ends_with_75(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_sources.behave(at, look_error="TimeoutError")
    assert main(["data.json", "--task", "a", "--pattern", f"odd://{at}/{{task}}_{{split}}"]) == 75
    assert "hunter2" not in capsys.readouterr().err


def test_the_module_runs_without_torch(at: Path) -> None:
    code = (
        "import sys; sys.argv[1:] = ['data.json']; import runpy\n"
        "try: runpy.run_module('boxcar.training.fetch', run_name='__main__')\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.stdout.decode().endswith("0 False\n"), done.stderr.decode()
