"""A box of the local profile: a folder on this machine. It gets what a rented box would get.

The agent is detached into a session of its own with a clean environment, so that nothing of the
laptop's shell reaches a training by accident, and closing the terminal ends nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxcar.formats import durable, release
from boxcar.laptop.project import Project

# What a login shell on a fresh machine has too, and what makes a GPU visible.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_")


def write_credentials(
    project: Project, box: str, env: Mapping[str, str], webhooks: list[dict[str, str]]
) -> None:
    """The box's secrets, on its own disk, for its owner alone."""
    path = Path(project.plan.box(box).credentials)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record: dict[str, Any] = {"env": dict(env), "webhooks": webhooks}
    durable.write_whole(path, json.dumps(record).encode(), mode=0o600)


def start_agent(
    project: Project, queue: str, release_digest: str, start_index: int
) -> subprocess.Popen[bytes]:
    """Start the agent of a queue, detached; its output goes to the agent's log on the box."""
    scratch = project.scratch(project.plan.queues[queue])
    durable.make_folder(scratch.root)
    wrapper = project.durable.release(release_digest) / release.RUN_QUEUE
    with scratch.agent_log(queue).open("ab") as log:
        return subprocess.Popen(
            ["bash", str(wrapper), queue, str(start_index)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=clean_environment(os.environ),
        )


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
