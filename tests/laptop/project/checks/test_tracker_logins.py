"""A tracker that asks for a login on a box is told before; one that a flag turns on is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.checks import tracker_logins
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.plan import plan

JOB = """\
name: run-1
command: train.py --out {out}
queues: {queue.txt: box-a}
artifacts: [model.pt]
"""


def lacking(root: Path, source: str, job: str = JOB, **files: str) -> list[str]:
    for name, text in {"train": source, **files}.items():
        (root / f"{name}.py").write_text(text)
    (root / "queue.txt").write_text("- a\n")
    (root / "job.yaml").write_text(job)
    project = open_project(root / "job.yaml", "local")
    return [one.tracker.name for one in tracker_logins.lacking(root, project.plan)["a"]]


@pytest.mark.parametrize(
    "source",
    [
        "import wandb\nwandb.init()\n",
        "from wandb import init\ninit()\n",
        "import wandb\nfrom lightning.pytorch.loggers import WandbLogger\nWandbLogger()\n",
        "import wandb\ndef main():\n    wandb.init()\nif __name__ == '__main__':\n    main()\n",
        "import wandb\nif dist.get_rank() == 0:\n    wandb.init()\n",
        "import wandb\nif accelerator.is_main_process:\n    wandb.init()\n",
        "import wandb\nif int(os.environ.get('RANK', 0)) == 0:\n    wandb.init()\n",
        "import wandb\nclass Log:\n    def __init__(self):\n        wandb.init()\nLog()\n",
        "def main(rank):\n    import wandb\n    wandb.init()\nmp.spawn(main)\n",
        "from log import begin\nbegin()\n",
    ],
)
def test_one_that_is_used_whatever_the_flags_say(tmp_path: Path, source: str) -> None:
    log = "import wandb\ndef begin():\n    wandb.init()\n"
    assert lacking(tmp_path, source, log=log) == ["wandb"]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import wandb\nexcept ImportError:\n    wandb = None\n",
        "if args.wandb:\n    import wandb\n    wandb.init()\n",
        "import wandb\nif args.wandb and rank == 0:\n    wandb.init()\n",
        "import wandb\nrun = Dummy() if args.off else wandb.init()\n",
        "import wandb\ndef log():\n    wandb.init()\nif args.wandb:\n    log()\n",
        "import wandb\ndef log():\n    if args.off:\n        return\n    wandb.init()\nlog()\n",
        "import wandb\nwandb.init(mode='disabled')\n",
        "import os, wandb\nos.environ['WANDB_MODE'] = 'offline'\nwandb.init()\n",
        "import os, wandb\nos.environ['WANDB_API_KEY'] = open('key').read()\nwandb.init()\n",
        "from log import name\n",
        "import log.wandb\n",
    ],
)
def test_one_that_a_flag_turns_on_or_the_script_itself_answers_for(
    tmp_path: Path, source: str
) -> None:
    log = "name = 1\ndef begin():\n    import wandb\n    wandb.init()\n"
    assert lacking(tmp_path, source, log=log) == []


@pytest.mark.parametrize(
    "more",
    [
        "env: {WANDB_MODE: offline}",
        "env: {WANDB_MODE: online}",
        "secrets: [WANDB_API_KEY]",
        "cells: {a: {env: {WANDB_MODE: offline}}}",
    ],
)
def test_a_secret_or_a_mode_of_the_job_is_an_answer(tmp_path: Path, more: str) -> None:
    assert lacking(tmp_path, "import wandb\nwandb.init()\n", f"{JOB}{more}\n") == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("wandb", 'write env: {WANDB_MODE: "offline"} or secrets: [WANDB_API_KEY]'),
        ("swanlab", 'write env: {SWANLAB_MODE: "offline"} or secrets: [SWANLAB_API_KEY]'),
        ("mlflow", 'write env: {MLFLOW_TRACKING_URI: "sqlite:///{out}/mlflow.db"}'),
        ("trackio", 'write env: {TRACKIO_DIR: "{out}/trackio"}'),
        ("comet_ml", "write secrets: [COMET_API_KEY]"),
    ],
)
def test_plan_names_the_line_to_write_once(
    tmp_path: Path, name: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking(tmp_path, f"import {name}\n")
    (tmp_path / "queue.txt").write_text("- a\n- b name=c\n")
    assert plan(open_project(tmp_path / "job.yaml", "local"), as_json=False) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count(f"train.py imports {name}") == 1
    assert line in said


def test_a_module_is_read_as_a_script_is(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "main.py").write_text("import swanlab\nswanlab.init()\n")
    job = JOB.replace("train.py", "-m pkg.main")
    assert lacking(tmp_path, "", job) == ["swanlab"]


def test_a_script_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    job = JOB.replace("train.py", "-m trl.scripts.sft")
    assert lacking(tmp_path, "import wandb\n", job) == []
