"""A project that is nothing like the example: its own script, torch under torchrun, JSON configs,
artifacts named otherwise, and names and values that a shell would take for commands.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from living import kill_all
from proof import assert_nothing_runs, assert_published_once, assert_pulled
from tiny_project import Said, TinyProject

pytest.importorskip("torch")
pytest.importorskip("safetensors")

EVIL = (
    "a  b\t$(touch canary) `touch canary` ; touch canary & ' \" \\ * ~ ${HOME} !! {x} #ü\N{SNOWMAN}"
)
# Spelled alike in JSON and YAML, so that a search finds it wherever it leaked to.
TOKEN = "tok-$(touch canary);&|`touch canary`"
FOLDER = 'my "project" $(touch canary) it\'s größe;&'
CONFIGS = "con figs/$(touch canary) `'\" größe"
CELLS = ["größe-1", "b.2"]
TASK = "classify $(touch canary);'\"*\\n ü"

TRAIN = """
import csv, json, os, sys
from pathlib import Path
import torch
import torch.distributed as dist
from safetensors.torch import save_file

config = json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text())
dist.init_process_group("gloo")
weights = torch.full((3,), float(config["fill"]))
dist.all_reduce(weights)
out = Path(os.environ["BOXCAR_OUT"])
(out / "weights").mkdir(exist_ok=True)
save_file({"layer.weight": weights}, out / "weights" / "final.safetensors")
with (out / "scores.csv").open("w", newline="") as file:
    csv.writer(file).writerows([["epoch", "accuracy"], [1, 0.25], [2, 0.5]])
seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "ranks": dist.get_world_size()}
told = ("MY_", "BOXCAR_")
seen["env"] = {name: value for name, value in os.environ.items() if name.startswith(told)}
(out / "seen.json").write_text(json.dumps(seen))
dist.destroy_process_group()
"""
JOB = {
    "name": "unfamiliar-7",
    "code": "the code",
    "command": "'tr ain.py' --config {cfg} --task {task} --epochs={epochs} "
    "--name '<{name}>' 'plain $HOME'",
    "epochs": 4,
    "nproc_per_node": 1,
    "queues": {"lists/night_run.txt": "box.one"},
    "artifacts": [
        {"path": "weights/final.safetensors", "keys": ["layer.weight"]},
        "scores.csv",
        "seen.json",
    ],
    "env": {"MY_VALUE": EVIL, "MY_EMPTY": "", "OMP_NUM_THREADS": "1"},
    "secrets": ["MY_TOKEN"],
}


class Unfamiliar:
    def __init__(self, root: Path) -> None:
        self.project = TinyProject(root, run="unfamiliar-7")
        code = root / "the code"
        (code / CONFIGS).mkdir(parents=True)
        (code / "tr ain.py").write_text(TRAIN)
        (root / "lists").mkdir()
        lines = []
        for fill, cell in enumerate(CELLS, start=1):
            (code / CONFIGS / f"{cell}.json").write_text(json.dumps({"fill": fill}))
            lines.append(f"{_quoted(f'{CONFIGS}/{cell}.json')} {_quoted(TASK)}")
        lines[1] += " 7"
        (root / "lists/night_run.txt").write_text("\n".join(["# tonight", *lines, ""]))
        (root / "job.yaml").write_text(yaml.safe_dump(JOB, sort_keys=False, allow_unicode=True))

    def live(self) -> None:
        secret = {"MY_TOKEN": TOKEN}
        self.planned = self.project.boxcar("plan", "--json", env=secret).ended(0)
        self.project.boxcar("launch", env=secret).ended(0)
        self.watched = self.project.boxcar("watch", "--json").ended(0)
        self.project.boxcar("pull").ended(0)
        self.verified = self.project.boxcar("verify", "--json").ended(0)
        assert_published_once(self.project, CELLS)
        assert_pulled(self.project, CELLS)
        self.holding_the_secret = _files_with(self.project.root, TOKEN)
        digest = self.verified.document["digest"]
        self.down: Said = self.project.boxcar("down", "--approve", digest)

    def result(self, cell: str, name: str) -> Path:
        return self.project.results / "cells" / cell / name


@pytest.fixture(scope="module")
def unfamiliar(
    tmp_path_factory: pytest.TempPathFactory, announce: Callable[[str], None]
) -> Iterator[Unfamiliar]:
    announce("a run of another project with torch, from plan to teardown; half a minute")
    made = Unfamiliar(tmp_path_factory.mktemp("unfamiliar") / FOLDER)
    try:
        made.live()
        yield made
    finally:
        kill_all(made.project.root)


def test_the_whole_life_works_from_the_job_file_alone(unfamiliar):
    cells = unfamiliar.watched.document["cells"]
    assert [(cell["cell"], cell["state"]) for cell in cells] == [
        (name, "verified") for name in CELLS
    ]
    unfamiliar.down.ended(0)
    assert not unfamiliar.project.tier.exists()
    assert_nothing_runs(unfamiliar.project)


def test_every_word_of_the_command_arrives_as_it_was_written(unfamiliar):
    for cell, epochs in zip(CELLS, ("4", "7"), strict=True):
        seen = json.loads(unfamiliar.result(cell, "seen.json").read_text())
        assert seen["argv"] == [
            "--config", f"{CONFIGS}/{cell}.json", "--task", TASK, f"--epochs={epochs}",
            "--name", f"<{cell}>", "plain $HOME",
        ]  # fmt: skip
        assert seen["ranks"] == 1


def test_every_value_of_the_environment_arrives_as_it_was_written(unfamiliar):
    env = json.loads(unfamiliar.result(CELLS[0], "seen.json").read_text())["env"]
    assert (env["MY_VALUE"], env["MY_EMPTY"], env["MY_TOKEN"]) == (EVIL, "", TOKEN)
    assert (env["BOXCAR_RUN"], env["BOXCAR_CELL"]) == ("unfamiliar-7", CELLS[0])
    assert env["BOXCAR_OUT"] == str(unfamiliar.project.out("box.one", CELLS[0]))
    assert "BOXCAR_CREDENTIALS" not in env


def test_the_artifacts_are_those_that_torch_made(unfamiliar):
    from safetensors.torch import load_file

    loaded = load_file(unfamiliar.result("b.2", "weights/final.safetensors"))
    assert loaded["layer.weight"].tolist() == [2.0, 2.0, 2.0]
    with unfamiliar.result("b.2", "scores.csv").open(newline="") as file:
        assert list(csv.reader(file))[2] == ["2", "0.5"]
    kinds = {finding["path"] for finding in _receipt(unfamiliar)["findings"]}
    assert kinds == {"weights/final.safetensors", "scores.csv", "seen.json"}


def test_nothing_that_a_person_wrote_was_run_by_a_shell(unfamiliar):
    assert not [path for path in unfamiliar.project.root.parent.rglob("*") if path.name == "canary"]


def test_a_secret_lies_on_the_box_alone(unfamiliar):
    # The script wrote its environment into its result itself; nothing else may know it.
    names = {path.name for path in unfamiliar.holding_the_secret} - {"seen.json"}
    assert names == {"credentials-unfamiliar-7.json"}


def _receipt(unfamiliar: Unfamiliar) -> dict[str, list[dict[str, str]]]:
    receipt = json.loads((unfamiliar.project.results / "receipt.json").read_text())
    found: dict[str, list[dict[str, str]]] = receipt["cells"][0]
    return found


def _quoted(word: str) -> str:
    """As a person quotes it in a queue file, by shell rules."""
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _files_with(folder: Path, text: str) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]
