"""Neither a closed pipe nor a terminal without our characters ends a command with a traceback."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.door import run_verb

BOXCAR = str(Path(sys.executable).with_name("boxcar"))
# Each is imported by verbs only: a person waits for it with every Tab.
HEAVY = ("invoke", "pydantic", "rich", "jinja2", "pathspec", "boxcar.laptop.common.show")


def typed(line: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """In bash, whose exit code is that of boxcar: `$0` is the program."""
    return subprocess.run(
        ["bash", "-c", line, BOXCAR], cwd=folder, env=os.environ | env, capture_output=True,
        text=True, errors="replace", check=False, timeout=LIMIT_S,
    )  # fmt: skip


@pytest.mark.parametrize("words", ["", "--help launch", "--print-completion-script=bash"])
def test_who_reads_no_further_is_no_error(words: str, tmp_path: Path) -> None:
    # `true` is gone before anything is printed.
    done = typed(f'(sleep 0.1; "$0" {words}) | true; exit ${{PIPESTATUS[0]}}', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_an_answer_is_a_sentence(tmp_path: Path) -> None:
    done = typed('"$0" --help launch > /dev/full', tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "[Errno 28] No space left on device\n"


@pytest.mark.parametrize("notes", ["2> >(true)", "2>/dev/full", "2>&-"])
def test_notes_that_nobody_can_read_change_no_exit_code(notes: str, tmp_path: Path) -> None:
    line = f'sleep 0.1; "$0" plan --json {notes}'
    usual, unread = typed('"$0" plan --json', tmp_path), typed(line, tmp_path)
    assert unread.returncode == usual.returncode == 2
    assert json.loads(unread.stdout) == json.loads(usual.stdout)
    done = typed(f'exec {notes}; sleep 0.1; "$0" explain --profile autodl', tmp_path)
    assert (done.returncode, len(done.stdout.splitlines()) > 10) == (0, True)


def test_a_stdout_that_was_closed_is_no_error(tmp_path: Path) -> None:
    done = typed('"$0" explain --profile autodl >&-', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert typed('"$0" plan --json >&-', tmp_path).returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_write_is_replaced(encoding: str, tmp_path: Path) -> None:
    line = '"$0" explain --profile autodl --lang zh'
    usual, old = typed(line, tmp_path), typed(line, tmp_path, PYTHONIOENCODING=encoding)
    assert (old.returncode, old.stderr) == (usual.returncode, "") == (0, "")
    assert "?" in old.stdout


def test_json_loses_nothing_to_an_old_terminal(tmp_path: Path) -> None:
    line = '"$0" explain --profile autodl --lang zh --json'
    usual, old = typed(line, tmp_path), typed(line, tmp_path, PYTHONIOENCODING="ascii")
    assert json.loads(old.stdout) == json.loads(usual.stdout)


@pytest.mark.parametrize(
    "words", ["--version", "--help", "launch --help", "--complete -- boxcar explain --profile au"]
)
def test_what_is_typed_often_imports_little(words: str, tmp_path: Path) -> None:
    program = f"""
import sys
sys.argv = ["boxcar", *{words.split()!r}]
from boxcar.cli import program
try:
    program.run()
except SystemExit:
    pass
print("IMPORTED", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1].split()[1:] == []


def test_a_name_that_this_locale_cannot_write_is_a_sentence() -> None:
    def verb() -> int:
        "消融".encode("ascii")
        return 0

    code, messages = run_verb._ended(verb)
    assert code == 2 and str(messages[0]).endswith("Type: export LC_ALL=C.UTF-8")


def test_a_disk_that_is_mounted_read_only_is_named_with_what_helps() -> None:
    def write() -> int:
        raise OSError(errno.EROFS, "Read-only file system", "/work/.boxcar")

    code, [said] = run_verb._ended(write)
    assert code == 1 and said.text.startswith("/work/.boxcar: Read-only file system. Boxcar keeps")
