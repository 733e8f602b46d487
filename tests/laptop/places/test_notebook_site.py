"""A run on a platform without ssh: what is written for it, what a session does, what comes back."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from living import kill_all
from waiting import LIMIT_S, until

from boxcar.laptop.common import home
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.push import push
from boxcar.laptop.verbs.render import render
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import journal

TRAIN = """
import argparse, json, os, pathlib, signal, sys, time
said = argparse.ArgumentParser()
said.add_argument("--lr", type=float)
said.add_argument("--resume")
words = said.parse_args()
out = pathlib.Path(os.environ["BOXCAR_OUT"])
step = json.loads(pathlib.Path(words.resume).read_text())["step"] if words.resume else 0
print("start at", step, flush=True)
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
while step < 20:
    time.sleep(float(os.environ.get("A_STEP_S", "0.01")))
    step += 1
    (out / "new").write_text(json.dumps({"step": step}))
    (out / "new").rename(out / "ckpt.json")
    if told:
        sys.exit(85)
(out / "metrics.json").write_text(json.dumps({"acc": words.lr, "token": len(os.environ["TOKEN"])}))
"""
JOB = {
    "name": "spirals",
    "command": "train.py",
    "launcher": "python",
    "queues": {"queues/q.txt": "box-a"},
    "artifacts": ["metrics.json"],
    "resume": "ckpt.json",
    "resume_args": "--resume {resume}",
    "secrets": ["TOKEN"],
    "env": {"A_STEP_S": "0.01"},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, and the platform's folders in a profile of its own below `there`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, there = tmp_path / "project", tmp_path / "there"
    (folder / "queues").mkdir(parents=True)
    (folder / "profiles").mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "queues" / "q.txt").write_text("- run 1 --lr=0.1\n- run 1 --lr=0.2\n")
    (folder / "job.yaml").write_text(yaml.safe_dump(JOB))
    for name in ("kaggle", "colab"):
        text = (home.assets_root() / "profiles" / f"{name}.yaml").read_text(encoding="utf-8")
        for path in ("/kaggle/working", "/content/boxcar-durable", "/tmp/boxcar", "/root/.boxcar"):
            text = text.replace(f"{path}", f"{there}{path}")
        (folder / "profiles" / f"{name}.yaml").write_text(text)
    yield folder
    kill_all(tmp_path)


def opened(root: Path, platform: str = "kaggle") -> Project:
    return open_project(root / "job.yaml", platform)


def rendered(root: Path, platform: str = "kaggle", **flags: Any) -> Path:
    render(opened(root, platform), platform=platform, environ={"KAGGLE_USERNAME": "ada"}, **flags)
    return root / ".boxcar" / platform / "files"


def working(root: Path) -> Path:
    return root.parent / "there" / "kaggle" / "working"


def settings_of(root: Path) -> dict[str, Any]:
    program = (root / ".boxcar" / "kaggle" / "files" / "box-a" / "session.py").read_text()
    line = next(line for line in program.splitlines() if line.startswith("SESSION"))
    found = json.loads(ast.literal_eval(line.partition("json.loads(")[2].removesuffix(")")))
    return {**found, "earlier_dirs": [str(root.parent / "there" / "input")]}


def start_session(root: Path, **changed: Any) -> subprocess.Popen[bytes]:
    """What Kaggle does with the files: the data set and the last output are inputs."""
    files = root / ".boxcar" / "kaggle" / "files"
    release = root.parent / "there" / "input" / "release"
    shutil.copytree(files / "release", release, dirs_exist_ok=True)
    told = json.dumps(settings_of(root) | changed)
    return subprocess.Popen(
        [sys.executable, "-I", str(files / "box-a" / "session.py")],
        env=os.environ | {"BOXCAR_SESSION": told, "TOKEN": "four"},
    )


def tell_to_stop(root: Path) -> None:
    """As the session does by itself when its time is nearly up."""
    said = settings_of(root)
    release = working(root) / "boxcar" / "spirals" / "releases" / said["digest"]
    command = [sys.executable, "-I", "-S", str(release / said["agent"]), "answer"]
    question = json.dumps(said["stop"]["q"]).encode()
    subprocess.run(command, input=question, check=True, stdout=subprocess.DEVNULL)


def end_machine(root: Path) -> None:
    """What it leaves is an input of the next; the rest of its disk is lost."""
    inputs = root.parent / "there" / "input" / "spirals-box-a"
    shutil.rmtree(inputs, ignore_errors=True)
    shutil.copytree(working(root), inputs)
    for left in (working(root), root.parent / "there" / "tmp", root.parent / "there" / "root"):
        shutil.rmtree(left, ignore_errors=True)


def starts(root: Path) -> list[str]:
    logs = sorted((root / "results" / "spirals" / "cells").glob("*/*.log"))
    lines = [line for log in logs for line in log.read_text().splitlines()]
    return [line for line in lines if line.startswith("start at")]


def test_a_session_that_is_stopped_and_one_that_is_killed_are_gone_on_with(root: Path) -> None:
    job = JOB | {"env": {"A_STEP_S": "0.3"}}
    (root / "job.yaml").write_text(yaml.safe_dump(job))
    rendered(root)
    stopped = start_session(root)
    until(lambda: [*(root.parent / "there").glob("tmp/**/out/ckpt.json")])
    tell_to_stop(root)
    assert stopped.wait(LIMIT_S) == 0
    end_machine(root)
    assert pull(opened(root), source=str(root.parent / "there" / "input" / "spirals-box-a")) == 0

    killed = start_session(root)
    live = working(root) / "boxcar" / "spirals" / "journal" / "q.jsonl"
    until(lambda: live.exists() and live.read_text().count('"cell.started"') > 1)
    kill_all(root.parent / "there")
    killed.wait()
    end_machine(root)

    (root / "job.yaml").write_text(yaml.safe_dump(job | {"env": {"A_STEP_S": "0.01"}}))
    rendered(root)
    assert start_session(root).wait(LIMIT_S) == 0
    assert pull(opened(root), source=str(working(root))) == 0
    assert verify(opened(root)) == 0
    first, second = starts(root)
    assert int(first.split()[-1]) > 0 and second == "start at 0"
    cells = root / "results" / "spirals" / "cells"
    assert {json.loads(p.read_text())["token"] for p in cells.glob("*/metrics.json")} == {4}


def test_when_its_time_is_up_a_session_ends_and_leaves_what_is_to_do(root: Path) -> None:
    # A cell lasts longer than the session's pause between two looks.
    (root / "job.yaml").write_text(yaml.safe_dump(JOB | {"env": {"A_STEP_S": "1"}}))
    rendered(root)
    assert start_session(root, most_s=0.0).wait(LIMIT_S) == 0
    assert pull(opened(root), source=str(working(root))) == 0
    with open_site(opened(root), print) as site:
        step = next_step(look_at_run(site, timestamp.utc_now()), site)
    assert step.command and step.command.verb == "render"


def test_what_is_written_holds_no_secret_and_names_its_owner(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-and-more")
    files = rendered(root)
    made = {path.relative_to(files).as_posix(): path for path in files.rglob("*") if path.is_file()}
    assert not any(b"hunter2" in path.read_bytes() for path in made.values())
    about = json.loads(made["box-a/kernel-metadata.json"].read_bytes())
    assert about["id"] == "ada/spirals-box-a" and about["is_private"] is True
    assert about["dataset_sources"] == ["ada/boxcar-spirals"]
    data = json.loads(made["release/dataset-metadata.json"].read_bytes())
    assert data["id"] == "ada/boxcar-spirals" and len(data["licenses"]) == 1


def test_colabs_notebook_holds_the_release_and_a_program_that_compiles(root: Path) -> None:
    files = rendered(root, "colab")
    book = json.loads((files / "spirals-box-a.ipynb").read_bytes())
    assert (book["nbformat"], [cell["cell_type"] for cell in book["cells"]]) == (
        4, ["markdown", "code", "code", "code"],
    )  # fmt: skip
    program = "".join(book["cells"][2]["source"])
    compile(program, "session.py", "exec")
    assert "drive.mount" in "".join(book["cells"][1]["source"])


@pytest.mark.parametrize(
    ("platform", "said"), [("", "name one with --for: kaggle"), ("kagle", "--for: expected kaggle")]
)
def test_a_platform_that_is_not_known_is_refused(root: Path, platform: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        render(opened(root), platform=platform)


def test_kaggles_files_need_an_owner(root: Path, tmp_path: Path) -> None:
    for environ in ({"KAGGLE_CONFIG_DIR": str(tmp_path)}, {"KAGGLE_USERNAME": "a b/c"}):
        with pytest.raises(InputError, match="your name on Kaggle is not known"):
            render(opened(root), platform="kaggle", environ=environ)
    (tmp_path / "kaggle.json").write_text(json.dumps({"username": "ada", "key": "not-read"}))
    render(opened(root), platform="kaggle", environ={"KAGGLE_CONFIG_DIR": str(tmp_path)})


@pytest.mark.parametrize("verb", [launch, push])
def test_what_needs_ssh_says_what_to_type(root: Path, verb: Any) -> None:
    with pytest.raises(InputError, match="Kaggle has no ssh") as caught:
        verb(opened(root))
    assert "render" in str(caught.value)
    assert not (root / ".boxcar" / "kaggle").exists()


# --- what is brought


def output(root: Path, events: int = 4) -> Path:
    """A folder as `kaggle kernels output` writes it, with a journal of so many events."""
    tier = root.parent / "output" / "boxcar" / "spirals"
    path = tier / "journal" / "q.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    written = journal.Journal(path, {"run": "spirals", "queue": "q", "box": "box-a"})
    for n in range(events):
        written.append("queue.drained", n=n)
    return tier.parents[1]


def bring(root: Path, folder: Path) -> None:
    with open_site(opened(root), print) as site:
        site.bring(folder)


def test_a_folder_that_is_no_output_is_refused_and_nothing_is_touched(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "other" / "boxcar" / "rings" / "journal").mkdir(parents=True)
    for folder in (tmp_path / "none", tmp_path / "other"):
        with pytest.raises(InputError, match=r"no such folder|holds no output of spirals"):
            bring(root, folder)
    assert not (root / ".boxcar" / "kaggle").exists()


def test_an_older_output_is_refused_and_another_history_too(root: Path) -> None:
    whole = output(root)
    bring(root, whole)
    here = root / ".boxcar" / "kaggle" / "durable" / "boxcar" / "spirals" / "journal" / "q.jsonl"
    before = here.read_bytes()
    bring(root, whole)
    path = whole / "boxcar" / "spirals" / "journal" / "q.jsonl"
    path.write_bytes(b"".join(before.splitlines(keepends=True)[:2]))
    with pytest.raises(InputError, match="is older than what was brought before"):
        bring(root, whole)
    output(root, 5)
    with pytest.raises(DamagedError, match="another history"):
        bring(root, whole)
    assert here.read_bytes() == before


def test_boxes_with_ssh_are_asked(root: Path) -> None:
    with (
        pytest.raises(InputError, match="--from is for platforms without ssh"),
        open_site(opened(root, "local"), print) as site,
    ):
        site.bring(root)
