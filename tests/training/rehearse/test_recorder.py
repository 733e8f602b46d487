"""The audit hook in a real Python process, found by it as its sitecustomize."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from boxcar.training.rehearse import outside_writes


class Process:
    """A Python that finds the hook; `python` runs some code in the code folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.code, self.work = root, root / "code", root / "work"
        for folder in (self.code, self.work / "out"):
            folder.mkdir(parents=True)
        self.python_path = ""

    def python(self, source: str) -> str:
        (self.code / "train.py").write_text(textwrap.dedent(source))
        added = outside_writes.prepare(self.root / "hook", self.notes, self.work, self.python_path)
        done = subprocess.run(
            [sys.executable, "train.py"],
            cwd=self.code,
            env={**os.environ, **added, "OUT": str(self.work / "out")},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    @property
    def notes(self) -> Path:
        return self.work / "writes.jsonl"

    @property
    def seen(self) -> dict[str, dict[str, Any]]:
        """The notes about what lies beside the work folder, by the path below the root."""
        top = f"{self.root}/"
        notes = outside_writes.read_notes(self.notes)
        return {
            str(note["path"]).removeprefix(top): note
            for note in notes
            if str(note["path"]).startswith(top)
        }


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path.resolve())


def test_writes_outside_are_noted_with_the_line_that_did_them(process: Process) -> None:
    process.python(
        """
        import os, pathlib, shutil, sqlite3, subprocess, sys
        pathlib.Path("../shared.txt").write_text("x")
        os.mkdir("cache")
        sqlite3.connect("results.db").close()
        os.rename("../shared.txt", "../moved.txt")
        fd = os.open("raw", os.O_CREAT | os.O_WRONLY)
        subprocess.run([sys.executable, "-c", "open('by_a_child', 'w')"])
        """
    )
    seen = {path: note["what"] for path, note in process.seen.items()}
    assert seen == {
        "shared.txt": "moved away",
        "code/cache": "made",
        "code/results.db": "written",
        "moved.txt": "written",
        "code/raw": "written",
        "code/by_a_child": "written",
    }
    assert process.seen["code/cache"]["by"] == f"{process.code}/train.py:4"


def test_reads_and_writes_into_out_are_not_noted(process: Process) -> None:
    process.python(
        """
        import os, pathlib
        out = pathlib.Path(os.environ["OUT"])
        (out / "a").write_text(pathlib.Path("train.py").read_text())
        (out / "b").mkdir()
        open(os.devnull, "w").write("x")
        pathlib.Path("none").unlink(missing_ok=True)
        pathlib.Path(".").mkdir(exist_ok=True)
        """
    )
    assert process.seen == {}


def test_a_link_out_of_out_is_outside(process: Process) -> None:
    (process.work / "out" / "link").symlink_to(process.code)
    process.python("import os; open(os.environ['OUT'] + '/link/there', 'w')")
    assert list(process.seen) == ["code/there"]


def test_the_sitecustomize_that_was_there_before_runs_too(process: Process) -> None:
    own = process.root / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.customized = 'yes'")
    process.python_path = str(own)
    assert process.python("import sys; print(sys.customized); open('x', 'w')") == "yes\n"
    # The interpreter may keep its bytecode beside it.
    assert [name for name in process.seen if "__pycache__" not in name] == ["code/x"]


def test_a_place_for_notes_that_cannot_be_written_fails_no_training(process: Process) -> None:
    process.notes.mkdir()
    assert process.python("open('x', 'w'); print('trained')") == "trained\n"


def test_without_its_variables_the_hook_does_nothing(process: Process) -> None:
    process.python("pass")
    environment = {**os.environ, "PYTHONPATH": str(process.root / "hook")}
    subprocess.run(
        [sys.executable, "-c", "open('x', 'w')"], cwd=process.code, env=environment, check=True
    )
    assert process.seen == {}
