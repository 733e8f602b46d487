"""The door: what Invoke would understand otherwise, and what a script gets for a wrong command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_failed
from tiny_project import make_project

from boxcar.door import program
from boxcar.door.command_line import parse_command
from boxcar.laptop.project.project import open_project
from boxcar.shared import errors
from boxcar.shared.errors import Command, InputError

ROOT = Path(__file__).parents[1]


def parsed_words(*words: str) -> list[str]:
    """The verbs that would be run."""
    return [typed.verb.name for typed in parse_command(words)]


def parsed(*words: str) -> dict[str, object]:
    """The flags that the one verb would get."""
    [typed] = parse_command(words)
    return dict(typed.values)


@pytest.mark.parametrize(
    ("words", "cfg", "given"),
    [
        (["c/b.yaml", "lr=1,2", "seed=0..2"], "c/b.yaml", ["lr=1,2", "seed=0..2"]),
        (["c/b.yaml", "lr=1", "plan"], "c/b.yaml", ["lr=1", "plan"]),
        (["plan", "launch"], "plan", ["launch"]),
        (["-", "lr=1"], "-", ["lr=1"]),
        (["c/b.yaml", "--set", "--lr=1,2"], "c/b.yaml", ["--lr=1,2"]),
        (["--task", "x", "c/b.yaml", "--write", "lr=1"], "c/b.yaml", ["lr=1"]),
        (["--task=x", "c/b.yaml", "lr=1"], "c/b.yaml", ["lr=1"]),
        (["c/b.yaml", "a=1", "--", "--lr=1,2", "--amp"], "c/b.yaml",
         ["a=1", "--", "--lr=1,2", "--amp"]),
        (["c/b.yaml", "layers=[1,2]", "t=a b"], "c/b.yaml", ["layers=[1,2]", "t=a b"]),
    ],
)  # fmt: skip
def test_free_words_behind_grid_are_its_own(words: list[str], cfg: str, given: list[str]) -> None:
    found = parsed("grid", *words)
    assert (found["cfg"], found["set"]) == (cfg, tuple(given))
    assert found.get("write", False) is ("--write" in words)
    assert found.get("task", "") == ("x" if any(w.startswith("--task") for w in words) else "")


def typed(*words: str) -> int:
    """As a process would type it; its exit code."""
    before = errors.program()
    try:
        with pytest.raises(SystemExit) as ended:
            program.run(["boxcar", *words])
    finally:
        errors.type_as(before)
    return int(ended.value.code or 0)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    ("words", "verb", "said"),
    [
        (["status", "--jsn", "--json"], "status", "did you mean '--json'?"),
        (["statu", "--json"], "", "there is no verb 'statu' (did you mean 'status'?)"),
        (["explain", "m", "--json"], "explain", "'m' is not a cell of this run,"),
        (["explain", "M2", "a", "--json"], "explain", "did you mean '--cell a'?"),
        (["explain", "--unet", "--json"], "explain", "explain has no flag '--unet'"),
        (["status", "--json"], "status", "job.yaml: no such file."),
        (["explain", "--profile", "autodll", "--json"], "explain", "no profile 'autodll'"),
        (["split", "--json", "--profile"], "split", "--profile needs a value"),
    ],
)
def test_a_script_that_asked_for_json_gets_a_document_for_what_was_wrong_too(
    words: list[str], verb: str, said: str, capsys
) -> None:
    assert typed(*words) == 2
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["format"], found["verb"], found["exit_code"]) == ("boxcar.error/1", verb, 2)
    assert said in found["messages"][0]["text"] and said in shown.err


def test_ctrl_c_is_a_document_too(monkeypatch, capsys) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("boxcar.laptop.verbs.check_profiles.check_profiles", interrupted)
    assert typed("check-profiles", "--json") == 130
    shown = capsys.readouterr()
    assert json.loads(shown.out)["exit_code"] == 130 and "interrupted" in shown.err


def test_without_json_nothing_but_words_is_said_of_a_mistake(capsys) -> None:
    assert typed("status", "--jsn") == 2
    shown = capsys.readouterr()
    assert not shown.out and "did you mean '--json'?" in shown.err


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "autodl", "launch", "--box", "a"],
        ["--profile", "autodl", "launch", "--box", "a"],
        ["--profile=autodl", "launch", "--box", "a"],
        ["launch", "-p", "autodl", "--box", "a"],
        ["launch", "--box", "a", "--profile=autodl"],
    ],
)
def test_a_profile_may_stand_before_its_verb_and_has_a_letter(words: list[str]) -> None:
    assert parsed_words(*words) == ["launch"]
    assert parsed(*words) == {"profile": "autodl", "box": ("a",)}


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["--list"], ["help"]])
def test_without_a_verb_all_are_listed(words: list[str], capsys) -> None:
    assert typed(*words) == 0
    assert "to set up       init, demo" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["launch", "--help"], ["help", "launch"], ["-h", "launch"]])
def test_the_help_of_a_verb_is_its_own(words: list[str], capsys) -> None:
    assert typed(*words) == 0
    assert capsys.readouterr().out.startswith("usage: boxcar launch [flags]\n")


def test_a_command_within_a_text_is_the_one_that_was_typed(monkeypatch, capsys) -> None:
    def said(*_: object, **__: object) -> int:
        raise InputError(f"nobody has measured it: {Command('smoke')}")

    monkeypatch.setattr("boxcar.laptop.verbs.check_profiles.check_profiles", said)
    assert typed("check-profiles", "--json") == 2
    shown = capsys.readouterr()
    assert "measured it: boxcar smoke" in shown.out and "measured it: boxcar smoke" in shown.err


GONE = """
import os, signal, sys
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
from boxcar.cli import program
program.run()
"""


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["status"], 2, "", "no longer exists. Change to your project"),
        (["init"], 2, "", "no longer exists"),
        (["grid", "c.yaml", "--json"], 2, '"exit_code": 2', "no longer exists"),
        (["--version"], 0, "boxcar ", ""),
        (["--help", "status"], 0, "--json", ""),
        (["--complete", "--", "boxcar", "stat"], 0, "status", ""),
    ],
)
def test_in_a_folder_that_is_gone_a_verb_says_so(
    tmp_path: Path, words: list[str], code: int, out: str, err: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GONE, *words],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert out in done.stdout and err in done.stderr and "Traceback" not in done.stderr


# Types Ctrl-C at itself as soon as this module is asked for.
_INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[:] = ["boxcar", "status"]
from boxcar.cli import program
program.run()
"""


@pytest.mark.parametrize(
    "module", ["boxcar.door", "boxcar.shared.sentence", "boxcar.laptop.common.show", "pydantic"]
)
def test_ctrl_c_while_modules_are_read_says_nothing(module: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED.format(name=module)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("", "")
    assert ended.returncode in (130, -2), "a shell calls both 130"


def test_ctrl_c_while_a_class_is_made_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.10 and 3.11 raise a RuntimeError for it."""

    def interrupted(words: object) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(program, "_answer", interrupted)
    assert typed("status") == 130


def test_a_cell_whose_line_is_commented_out_is_explained_by_its_bare_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    lines = ["# configs/a.json one", "configs/b.json one"]
    tiny = make_project(tmp_path, {"queue_1": lines})
    run = RunOnDisk(open_project(tiny.root / "job.yaml", "local"))
    run.site.tier.journals.mkdir(parents=True)
    run.say("queue_1", agent_started(), cell_failed("a"))
    monkeypatch.chdir(tiny.root)
    assert typed("explain", "a") == 0
    assert "failed" in capsys.readouterr().out
