from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.cell.cell_line import parse
from boxcar.shared.files import attempt, manifest
from boxcar.shared.files.plan import Artifact

# Says how it was started. With --wait it ends only when it is told to, or is given a checkpoint.
TRAIN = """\
import configs, json, os, sys, time
from pathlib import Path

out = Path(os.environ["BOXCAR_OUT"])
start = {
    "argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ), "beside": list(configs.__path__),
    "parent": Path(f"/proc/{os.getppid()}/environ").read_text().split("\\0"),
}
with (out / "starts.jsonl").open("a") as file:
    file.write(json.dumps(start) + "\\n")
(out / "latest.json").write_text('{"step": 1}')
gates = [Path(word.partition("=")[2]) for word in sys.argv if word.startswith("gate=")]
while not all(gate.exists() for gate in gates) or ("--wait" in sys.argv and "-r" not in sys.argv):
    time.sleep(0.01)
(out / "m.json").write_text('{"step": 1}')
"""
PLAN = {"command": ("train.py", "{cfg}"), "resume_args": ("-r", "{resume}")}


@pytest.fixture
def run_lines(make_run: Any, archives: Any) -> Any:
    """A run of these lines, by a script that says how it was started."""

    def made(*lines: str, **plan: Any) -> Any:
        run = make_run({"c": {}}, **PLAN | plan)
        run.release = run.push(archives, {"c": {}}, train=TRAIN, **PLAN | plan)
        say(run, *lines)
        return run

    return made


def say(run: Any, *lines: str) -> None:
    run.durable.queue("q1").write_text("".join(f"{line}\n" for line in lines))


def starts(run: Any, cell: str) -> list[Any]:
    path = run.out(cell) / "starts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def words(run: Any, cell: str) -> list[str]:
    return [*starts(run, cell)[-1]["argv"][1:]]


def test_words_arrive_letter_by_letter_and_variables_reach_the_script_alone(run_lines):
    odd = [
        "$HOME",
        "`id`",
        "two  words",
        "{cfg}",
        "{a:1}",
        "你好",
        "",
        "--",
        "'",
        '"',
        "\\",
        "x" * 3000,
    ]
    run = run_lines(
        f"configs/c.json t 3 name=a env.MARK='$x {{name}}' -- {shlex.join(odd)}",
        "- t name=b",
        job_env={"FILLED": "{name} {{name}} {x}"},
    )
    assert run.finish() == 1
    assert words(run, "a") == ["configs/c.json", *odd]
    [start] = starts(run, "a")
    assert start["env"]["MARK"] == "$x {name}"
    assert start["env"]["FILLED"] == "a {name} {x}"
    assert not [one for one in start["parent"] if one.startswith(("MARK=", "FILLED="))]
    assert "the command uses {cfg}" in run.events("cell.failed", cell="b")[0].data["reason"]


def test_without_a_config_and_in_out_the_code_is_found_and_nothing_else_lies_there(run_lines):
    run = run_lines("- - name=a --data=x.py", workdir="out", command=("train.py", "{name}"))
    assert run.finish() == 0
    code = run.scratch().code(run.release.name)
    [start] = starts(run, "a")
    assert start["argv"] == [f"{code}/train.py", "a", "--data=x.py"]
    assert start["cwd"] == str(run.out("a")) and set(start["beside"]) == {f"{code}/configs"}
    parts = start["env"]["PYTHONPATH"].split(":")
    assert "training-" in parts[0] and parts[1:] == [str(code)]
    made = manifest.read_manifest(run.durable.manifest("a"))
    assert (made.cfg, made.task, made.config) == ("-", "-", None)


def test_a_time_limit_ends_an_attempt_once_and_the_next_launch_resumes_by_words(run_lines):
    run = run_lines("configs/c.json t 3 name=a time=1s --wait")
    assert run.finish() == 1
    assert run.life("a") == ["claimed", "started", "failed"]
    [failed] = run.events("cell.failed")
    assert failed.data["failure"] == "TIME_LIMIT" and "after 1s" in failed.data["reason"]
    assert words(run, "a") == ["configs/c.json", "--wait"]
    say(run, "configs/c.json t 3 name=a time=1h --wait")
    assert run.finish() == 0
    assert words(run, "a") == ["configs/c.json", "--wait", "-r", str(run.out("a") / "latest.json")]


def test_an_adopted_cell_is_published_as_its_line_said(run_lines, tmp_path, until):
    line = f"configs/c.json t 3 name=a env.MARK=1 gate={tmp_path}/gate lr=1"
    run = run_lines(line)
    first = run.start()
    until(lambda: starts(run, "a"))
    first.kill()
    first.wait()
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert len(starts(run, "a")) == 1
    made, claim = (
        manifest.read_manifest(run.durable.manifest("a")),
        attempt.read_claim(run.durable.claim("a")),
    )
    asked = parse(line.encode(), 0, 1)
    assert made.overrides == asked.overrides
    assert made.words == ("train.py", "configs/c.json", *asked.overrides)
    assert made.config == "{}"
    [started] = run.events("cell.started")
    assert claim and claim.saying
    assert made.saying == started.data["saying"] == claim.saying
    assert started.data["own"]["env"] == {"MARK": "1"}


def test_a_broken_off_cell_is_not_gone_on_with_under_another_line(run_lines, until):
    run = run_lines("configs/c.json t 3 name=a --wait", "configs/c.json t 3 name=b")
    agent = run.start()
    until(lambda: starts(run, "a"))
    run.ask("stop")
    agent.wait(LIMIT_S)
    run.ask("run")
    say(run, "configs/c.json t 3 name=a --wait lr=2", "configs/c.json t 3 name=b")
    assert run.finish() == 1
    [failed] = run.events("cell.failed")
    assert failed.data["failure"] == "SAID-OTHERWISE"
    assert "was begun as 'configs/c.json t 3 name=a --wait'" in failed.data["reason"]
    assert len(starts(run, "a")) == 1 and run.state("b") == "verified"
    say(run, "configs/c.json t 3 name=a --wait", "configs/c.json t 3 name=b")
    assert run.finish() == 0
    assert words(run, "a")[-2] == "-r"


def test_a_verified_cell_whose_line_says_something_else_stays_and_is_told_once(run_lines):
    run = run_lines("configs/c.json t 3 name=a lr=1")
    assert run.finish() == 0
    before = run.durable.manifest("a").read_bytes()
    say(run, "configs/c.json t 3 name=a lr=2")
    assert run.finish() == 0
    [text] = run.warnings("said_otherwise")
    assert "was begun as 'configs/c.json t 3 name=a lr=1'" in text and "name=..." in text
    assert run.durable.manifest("a").read_bytes() == before and len(starts(run, "a")) == 1


def test_a_failed_cell_whose_config_was_put_right_begins_anew(make_run, archives):
    run = make_run({"a": {"exits": [1], "steps": 2}})
    assert run.finish() == 1
    first = attempt.read_claim(run.durable.claim("a"))
    run.release = run.push(archives, {"a": {"steps": 3}})
    assert run.finish() == 0
    assert run.result("a") == {"step": 3, "first": 0, "starts": 1}
    [aside] = run.scratch().earlier.iterdir()
    assert json.loads((aside / "latest.json").read_text()) == {"step": 2}
    assert "with another text of configs/a.json" in run.warnings("begun_anew")[0]
    claim = attempt.read_claim(run.durable.claim("a"))
    assert first and claim and claim.saying not in (None, first.saying)


def test_a_retry_is_held_against_what_an_earlier_agent_began(make_run, archives, until):
    run = make_run({"a": {"gate": 1, "steps": 2}, "b": {}})
    agent = run.start()
    pid = run.wait_for_step("a")
    agent.kill()
    agent.wait()
    run.release = run.push(archives, {"a": {"steps": 9}, "b": {}})
    second = run.start()
    run.wait_for("queue.started", count=2)
    os.kill(pid, signal.SIGKILL)
    assert second.wait(LIMIT_S) == 1
    assert run.events("cell.failed", cell="a")[0].data["failure"] == "SAID-OTHERWISE"
    assert run.starts("a") == [pid] and run.state("b") == "verified"


# --- nothing waits


# As torch does: a late module looks whether the package around it is the one that it belongs to.
TORCH = {
    "__init__.py": "VERSION = {version!r}\n",
    "late.py": "VERSION = {version!r}\n",
    "distributed/__init__.py": "",
    "distributed/run.py": """\
import runpy, sys
import torch

def main():
    import torch.late
    assert torch.VERSION == torch.late.VERSION, "late module of another torch"
    at = next(n for n, word in enumerate(sys.argv) if word.endswith(".py") and n)
    sys.argv[:] = sys.argv[at:]
    runpy.run_path(sys.argv[0], run_name="__main__")

if __name__ == "__main__":
    main()
""",
}
# What a cell's `installs` is: put in the place of the package that is there. It lasts for a while,
# in which whatever wants to wait for the next cell can.
INSTALLS = """\
import json, os, sys, time
from pathlib import Path
import mine, torch

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
found = [torch.VERSION, mine.VERSION]
if "installs" in config:
    time.sleep(1.5)
    for name, text in config["installs"].items():
        Path(config["site"], name).write_text(text)
    time.sleep(0.5)
(out / "m.json").write_text(json.dumps({"step": 1, "found": found}))
"""
LOOKS = """\
import json, os, sys, time
from pathlib import Path

time.sleep(1.0)
run, others = str(Path(sys.argv[2]).parents[2]), []  # tests beside this one have a train.py, too
for entry in Path("/proc").glob("[0-9]*"):
    try:
        words = (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        continue
    if "train.py" in words and run in words and int(entry.name) != os.getpid():
        others.append(words.replace("\\0", " "))
(Path(sys.argv[2]) / "m.json").write_text(json.dumps({"step": 1, "others": others}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> tuple[str, Path]:
    """A training's Python of its own with a stand-in of torch, and an editable package."""
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    site = Path(paths["purelib"])
    for name, text in packages("1").items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return str(folder / "bin" / "python"), site


def packages(version: str) -> dict[str, str]:
    torch = {f"torch/{name}": text for name, text in TORCH.items()}
    for name in ("torch/__init__.py", "torch/late.py"):
        torch[name] = torch[name].format(version=version)
    return {**torch, "mine.py": f"VERSION = {version!r}\n"}


@pytest.mark.parametrize("launcher", ["torchrun", "python"])
def test_a_cell_has_what_the_cell_before_has_installed(make_run, environment, launcher):
    python, site = environment
    installs = {"installs": packages("two"), "site": str(site)}
    run = make_run(
        {"a": {}, "b": installs, "c": {}},
        train=INSTALLS,
        launcher=launcher,
        training_python=python,
        resume=None,
        artifacts=(Artifact("m.json"),),
    )
    run.finish()
    assert [run.state(cell) for cell in "abc"] == ["verified"] * 3
    assert [run.result(cell)["found"] for cell in "abc"] == [["1", "1"], ["1", "1"], ["two"] * 2]


def test_a_script_that_looks_for_another_of_its_name_meets_none(make_run):
    """As `pgrep -f train.py` does, so that two do not share a GPU."""
    run = make_run(
        {"a": {}, "b": {}, "c": {}}, train=LOOKS, resume=None, artifacts=(Artifact("m.json"),)
    )
    assert run.finish() == 0
    assert [run.result(cell)["others"] for cell in "abc"] == [[], [], []]


def test_without_a_launcher_a_shell_script_is_a_cell(make_run):
    script = 'echo "{\\"step\\": 1}" >"$1/m.json"; python3 -c pass'
    run = make_run(
        {"a": {}},
        launcher="none",
        command=("bash", "-c", script.replace("{", "{{").replace("}", "}}"), "train", "{out}"),
        resume=None,
        artifacts=(Artifact("m.json"),),
    )
    assert run.finish() == 0
    assert run.result("a") == {"step": 1}
