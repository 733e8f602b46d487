"""A tiny project on a real Slurm, whose login node is this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import Cluster
from tiny_project import Said, TinyProject, make_project

PROFILE = """name: lab
extends: slurm
env: {{training_python: {python}, agent_python: {python}}}
storage:
  credentials: {folder}/home/credentials-{{run}}.json
  tiers: {{scratch: {{path: {folder}/scratch}}}}
"""


@dataclass(frozen=True)
class OnSlurm(TinyProject):
    """Its boxes are called a, b, ... as its queues."""

    cluster: Cluster | None = None
    laptop: Mapping[str, str] | None = None  # of a laptop; else this is the login node

    @property
    def env(self) -> dict[str, str]:
        assert self.cluster is not None
        return dict(self.laptop) if self.laptop else self.cluster.env

    def boxcar(
        self, *words: str, typed: str | None = None, env: Mapping[str, str] | None = None
    ) -> Said:
        profile = ("--profile", "lab") if "--profile" not in words else ()
        return super().boxcar(*words, *profile, typed=typed, env=self.env | dict(env or {}))

    @property
    def scratch(self) -> Path:
        return self.root.with_name("scratch")

    @property
    def local(self) -> Path:
        return self.scratch

    @property
    def tier(self) -> Path:
        return self.scratch / "boxcar" / self.run

    def box(self, box: str) -> Path:
        return self.scratch / "boxcar-boxes" / box / "boxcar" / self.run

    def said(self, queue: str) -> str:
        """What the agents of a queue and their batch script printed."""
        path = self.tier / "slurm" / f"{queue}.log"
        return path.read_text() if path.exists() else ""

    def task(self, index: int) -> str:
        """The newest task of that index that Slurm knows."""
        assert self.cluster is not None
        tasks = [task for task in self.cluster.jobs() if task.endswith(f"_{index}")]
        return max(tasks, key=lambda task: int(task.split("_")[0]))

    def state(self, index: int) -> str:
        assert self.cluster is not None
        return self.cluster.jobs()[self.task(index)]

    def start_now(self, index: int) -> None:
        """Not in two minutes, as Slurm has it after a requeue."""
        assert self.cluster is not None
        self.cluster.run("scontrol", "update", f"jobid={self.task(index)}", "starttime=now")


def on_slurm(
    folder: Path,
    cluster: Cluster,
    queues: Mapping[str, Sequence[str]],
    laptop: Mapping[str, str] | None = None,
    python: str = sys.executable,
    **job: Any,
) -> OnSlurm:
    """`laptop` is the environment of one that reaches the login node as `hpc`; `python` runs the
    agents and the cells.
    """
    job = {"slurm": {"time": "10", "partition": "gpu"}} | job
    made = make_project(folder / "project", queues, **job)
    text = PROFILE.format(python=python, folder=folder)
    text += "slurm: {login: hpc}\n" if laptop else ""
    (folder / "project" / "profiles").mkdir()
    (folder / "project" / "profiles" / "lab.yaml").write_text(text)
    (folder / "scratch").mkdir()
    (folder / "home").mkdir(exist_ok=True)
    return OnSlurm(made.root, made.run, cluster=cluster, laptop=laptop)
