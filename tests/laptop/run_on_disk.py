"""A run as it lies on disk, for the tests of what looks at one: real files, no agent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.profiles.slurm_options import SlurmOfJob
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import Condition, RunView
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.files import codec, queue_line
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.plan import Box, Cell, Plan

LINES = {
    "queue_1": ["configs/a.yaml recon 3", "configs/b.yaml [red] 3"],
    "queue_2": ["configs/c.yaml seg 3"],
}
RELEASE = "ab" * 32
# What stands on the tier of a cell that is verified, and its digest.
MANIFEST = b"the manifest, as its bytes"
SHA256 = digest.of_bytes(MANIFEST)
_HOLD = """
import sys
from pathlib import Path
from string import ascii_lowercase
from boxcar.shared.disk import lock
held = lock.try_hold(Path(sys.argv[1]))
print("held" if held is not None else "not held", flush=True)
sys.stdin.read()
"""


@dataclass
class RunOnDisk:
    """A run as its agents would leave it: real journals, real locks, no agent."""

    project: Project

    @property
    def site(self) -> LocalSite:
        return LocalSite(self.project, print)

    def journal(self, queue: str) -> Journal:
        common = {"run": "demo", "queue": queue, "box": self.project.plan.queues[queue]}
        return Journal(self.site.tier.journal(queue), common)

    def say(self, queue: str, *events: tuple[str, dict[str, Any]]) -> None:
        journal = self.journal(queue)
        for type_, data in events:
            if data.get("manifest_sha256") == SHA256:
                self.publish(data["cell"])
            journal.append(type_, **data)

    def publish(self, cell: str) -> None:
        path = self.site.tier.manifest(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MANIFEST)

    def beat(self, queue: str, at: str, **fields: Any) -> None:
        given = {"phase": "running", "box": "box-a", "release": RELEASE, "pid": 7} | fields
        beat = Heartbeat(queue=queue, at=at, **given)
        path = self.site.tier.heartbeat(queue)
        atomic.write_whole(path, codec.to_document(beat))

    def look(self, in_s: float = 0.0) -> RunView:
        return look_at_run(self.site, from_now(in_s))

    def condition(self, queue: str, in_s: float = 0.0) -> Condition:
        view = self.look(in_s)
        return view.queue(queue).condition


def make_run(root: Path, lines: Mapping[str, Sequence[str]] = LINES) -> RunOnDisk:
    plan = _plan(root, lines)
    job, profile = (
        SimpleNamespace(
            **{"name": "demo", "slurm": SlurmOfJob(), "secrets": (), "notify": ()},
            price={},
            budget={},
            smoke=SimpleNamespace(is_given=False),
            cells={},
        ),
        load_profile("local", root),
    )
    project = Project(root, job, profile, plan, {})
    for folder in project.on_tier.folders():
        folder.mkdir(parents=True)
    for queue, texts in lines.items():
        project.on_tier.queue(queue).write_text("".join(f"{text}\n" for text in texts))
    return RunOnDisk(project)


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that holds the lock, as an agent would; it ends with its stdin."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        yield holder


def from_now(seconds: float) -> str:
    return timestamp.utc(datetime.now(timezone.utc) + timedelta(seconds=seconds))


def agent_started(pid: int = 7) -> tuple[str, dict[str, Any]]:
    return "agent.started", {"pid": pid, "release": RELEASE, "start_index": 0, "python": "3.12"}


def cell_started(cell: str, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    """As LINES has the cell, else as another one of the same kind."""
    fields = (text.split() for texts in LINES.values() for text in texts)
    tasks = {cfg: task for cfg, task, _ in fields}
    cfg = f"configs/{cell}.yaml"
    line = {"cfg": cfg, "task": tasks.get(cfg, "recon"), "epochs": 3, "nproc": 1}
    return "cell.started", {"cell": cell, "attempt": attempt, **line}


def cell_progress(cell: str, step: int, **numbers: Any) -> tuple[str, dict[str, Any]]:
    return "cell.progress", {"cell": cell, "attempt": 1, "progress": {"step": step} | numbers}


def cell_got_worse(cell: str) -> tuple[str, dict[str, Any]]:
    """The last report of a training that has left its best one behind."""
    numbers = {"progress": {"val_loss": 5.7246}, "best": {"val_loss": 0.0667}}
    return "cell.progress", {"cell": cell, "attempt": 1} | numbers


def cell_failed(cell: str, *, is_final: bool = False) -> tuple[str, dict[str, Any]]:
    why = {"failure": "OOM", "reason": "out of memory", "rc": 1, "is_final": is_final}
    return "cell.failed", {"cell": cell, "attempt": 1, "release": RELEASE, "seconds": 5.0} | why


def cell_verified(cell: str, sha256: str = SHA256) -> tuple[str, dict[str, Any]]:
    data = {"cell": cell, "attempt": 1, "manifest_sha256": sha256, "metrics": {"psnr": 27.25}}
    return "cell.verified", data


def queue_done() -> tuple[str, dict[str, Any]]:
    return "queue.done", {"verified": 1, "failed": 0}


def _plan(root: Path, lines: Mapping[str, Sequence[str]]) -> Plan:
    boxes = tuple(f"box-{letter}" for letter in ascii_lowercase)[: max(2, len(lines))]
    queues = dict(zip(lines, boxes, strict=False))
    cells = tuple(
        Cell(
            *(line.name, line.cfg, line.task, line.epochs or 1, queue, line.index, 1),
            own=line.own,
            overrides=line.overrides,
        )
        for queue, texts in lines.items()
        for line in queue_line.parse_queue("".join(f"{t}\n" for t in texts).encode()).cells
    )
    return Plan(
        run="demo",
        profile="local",
        durable_dir=str(root / "tier"),
        boxes=tuple(
            Box(name, str(root / "data" / name), str(root / f"{name}.credentials"))
            for name in boxes
        ),
        queues=queues,
        cells=cells,
        command=("train.py",),
        launcher="python",
        nproc=1,
        cell_nproc={},
        epochs=9,
        artifacts=(),
        resume=None,
        scratch=(),
        env={},
        secrets=(),
        linger_s=0,
        agent_python=sys.executable,
        training_python=sys.executable,
    )
