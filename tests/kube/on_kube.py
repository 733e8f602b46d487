"""A tiny project on a cluster of the tests: a claim is the tier, and each queue is a Job."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_cluster import KubeCluster
from kube_objects import claim
from tiny_project import TinyProject, make_project

from boxcar.laptop.release.kube_objects import Owner, job_name

IMAGE = f"python@sha256:{'0' * 64}"
PROFILE = """name: lab
extends: kubernetes
env: {{image: "{image}"}}
meter: {{is_billed: no}}
kubernetes: {{claim: {claim}, gpus: {gpus}, shm: 64Mi}}
"""


@dataclass(frozen=True)
class OnKube(TinyProject):
    """Its boxes are called a, b, ... as its queues."""

    kube: KubeCluster | None = None
    claim: str = ""

    def start(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:
        assert self.kube is not None
        profile = ("--profile", "lab") if "--profile" not in words else ()
        return super().start(*words, *profile, env=self.kube.env | dict(env or {}), stdin=stdin)

    @property
    def local(self) -> Path:
        assert self.kube is not None
        return self.kube.claim_folder(self.claim)

    @property
    def tier(self) -> Path:
        assert self.kube is not None
        return self.kube.claim_folder(self.claim) / "boxcar" / self.run

    def job(self, queue: str) -> str:
        """The name of its Job."""
        return job_name(Owner(self.run, self.claim, "/checkpoints"), queue)


def on_kube(
    folder: Path,
    kube: KubeCluster,
    queues: Mapping[str, Sequence[str]],
    *,
    gpus: int = 1,
    mode: str = "ReadWriteMany",
    more: str = "",
    **job: Any,
) -> OnKube:
    """`more`: of its profile. Its claim is made; each test has a claim of its own."""
    name = f"tier-{folder.name.replace('_', '-').lower()[-40:]}"
    kube.apply(claim(name, mode))
    made = make_project(folder / "project", queues, **job)
    (made.root / "profiles").mkdir()
    text = PROFILE.format(image=IMAGE, claim=name, gpus=gpus) + more
    (made.root / "profiles" / "lab.yaml").write_text(text)
    return OnKube(made.root, made.run, kube=kube, claim=name)
