"""A run whose agents have done their work: real files on a tier, on boxes and on the laptop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.job import ReportWords
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.project import Project
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.manifest import Carried, FileRecord, Manifest
from boxcar.shared.files.plan import Artifact, Box, Cell, Plan
from boxcar.shared.files.release import Code, Release

RUN = "tiny"
WEIGHTS = bytes(range(256)) * 40
FILES = {"weights.dat": WEIGHTS, "metrics.json": b'{"psnr": 31.25, "step": 40}'}
ARTIFACTS = ("weights.dat", "metrics.json")


@dataclass
class FinishedRun:
    """`cells` are on queue q1 and box box-a; each was published with FILES."""

    root: Path
    project: Project

    @property
    def site(self) -> LocalSite:
        return LocalSite(self.project, print)

    def publish(
        self,
        cell: str,
        files: dict[str, bytes] | None = None,
        carried: dict[str, bytes] | None = None,
        **facts: Any,
    ) -> None:
        """What an agent leaves of a cell: its files, the manifest last."""
        folder = self.site.tier.cell(cell)
        records = _written(folder, files or FILES)
        if carried:
            facts["carried"] = Carried(_written(folder, carried), ("may hold a secret: wandb/s",))
        made = Manifest(
            run=RUN, cell=cell, queue="q1", box="box-a", release="r1", attempt=1, task="recon",
            cfg=f"configs/{cell}.yaml", epochs=3, started_at=timestamp.utc_now(),
            ended_at=timestamp.utc_now(), files=records,
        )  # fmt: skip
        (folder / paths.MANIFEST).write_bytes(codec.to_document(replace(made, **facts)))

    def copy_here(self) -> None:
        """The cells on the laptop, as a pull leaves them, without the time that rsync takes."""
        for folder in self.site.tier.cells.iterdir():
            shutil.copytree(folder, self.project.results.cell(folder.name))
        shutil.copytree(self.site.tier.journals, self.project.results.journals)

    def write_queue(self, queue: str, text: str) -> None:
        self.site.tier.queue(queue).write_text(text)

    def say(self, queue: str, *events: tuple[str, dict[str, Any]]) -> None:
        """What an agent writes down while it works."""
        journal = Journal(self.site.tier.journal(queue), {"run": RUN, "queue": queue})
        for type_, data in events:
            journal.append(type_, **data)

    def claim(self, cell: str, queue: str) -> None:
        made = Claim(cell, queue, self.project.plan.queues[queue], timestamp.utc_now())
        atomic.create_once(self.site.tier.claim(cell), codec.to_document(made))

    def write_release(self, name: str, *cells: str) -> Path:
        """A release of the same run whose plan has other cells."""
        plan = replace(self.project.plan, cells=tuple(_cell(c, i) for i, c in enumerate(cells)))
        data = codec.to_document(plan)
        files = (FileRecord("plan.json", len(data), digest.of_bytes(data)),)
        made = Release(RUN, "onbox.pyz", "training.zip", Code(None, False), files, {"name": name})
        folder = self.site.tier.release(made.digest)
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(data)
        (folder / "release.json").write_bytes(codec.to_document(made))
        return folder

    def here(self, cell: str, name: str) -> Path:
        return self.project.results.cell(cell) / name

    def flip_byte(self, path: Path, at: int) -> None:
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1
        path.write_bytes(data)

    def snapshot(self, folder: Path) -> dict[str, bytes]:
        """Every file below `folder`, by its relative path."""
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def make_run(root: Path, cells: tuple[str, ...] = ("a", "b"), artifacts: Any = ARTIFACTS) -> Any:
    """A run with all its cells published, journals, scratch and credentials on both boxes."""
    profile = load_profile("local", root)
    boxes = tuple(
        Box(name, str(profile.data_dir(root, name)), str(profile.credentials(root, name, RUN)))
        for name in ("box-a", "box-b")
    )
    plan = Plan(
        run=RUN, profile="local", durable_dir=str(profile.durable_dir(root)), boxes=boxes,
        queues={"q1": "box-a", "q2": "box-b"},
        cells=tuple(_cell(name, index) for index, name in enumerate(cells)),
        command=("train.py",), launcher="python", nproc=None, cell_nproc={}, epochs=3,
        artifacts=tuple(Artifact(item) if isinstance(item, str) else item for item in artifacts),
        resume=None, scratch=(), env={},
        secrets=(), linger_s=0, agent_python="python3", training_python="python3",
    )  # fmt: skip
    job = SimpleNamespace(
        **{
            "name": RUN,
            "secrets": (),
            "notify": (),
            "code": ".",
            "price": {},
            "budget": {},
            "cells": {},
        },
        report=ReportWords(),
        smoke=SimpleNamespace(is_given=False),
    )
    run = FinishedRun(root, Project(root, job, profile, plan, {}))  # type: ignore[arg-type]
    for folder in run.site.tier.folders():
        folder.mkdir(parents=True)
    for queue in plan.queues:
        run.write_queue(queue, "")
        (run.site.tier.journal(queue).parent).mkdir(exist_ok=True)
        journal = Journal(run.site.tier.journal(queue), {"run": RUN, "queue": queue})
        journal.append("queue.done", verified=len(cells), failed=0)
    for box in boxes:
        _write(Path(box.credentials), json.dumps({"env": {"KEY": "s"}, "webhooks": []}).encode())
        scratch = run.project.scratch(box.name)
        _write(scratch.out("a") / "latest.pth", WEIGHTS)
        _write(scratch.log("a"), b"epoch 3\n")
    for name in cells:
        run.publish(name)
    return run


def keep_run(run: FinishedRun, copy: Path) -> Callable[[], FinishedRun]:
    """Gives this run again, each time as it is now: to pull and verify one takes a second."""
    shutil.copytree(run.root, copy, symlinks=True)

    def again() -> FinishedRun:
        shutil.rmtree(run.root, ignore_errors=True)
        shutil.copytree(copy, run.root, symlinks=True)
        return replace(run)

    return again


def steps_until_end(work: Callable[[], object], watched: Path, die_at: int) -> int | None:
    """Run `work` in a child that kills itself before its file operation number `die_at`.

    None where it was killed, else how many operations there were: those that Python announces, and
    of the files that it opens those below `watched`.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            count = _kill_before(die_at, str(watched))
            work()
            os.write(writer, str(count[0]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) == 0, "the work raised"
    return int(said)


def _kill_before(die_at: int, watched: str) -> list[int]:
    count = [0]
    events = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "subprocess.Popen"}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in events or (event == "open" and watched in str(args[0])):
            count[0] += 1
            if count[0] == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def _cell(name: str, index: int) -> Cell:
    return Cell(name, f"configs/{name}.yaml", "recon", 3, "q1", index, None)


def _written(folder: Path, files: dict[str, bytes]) -> tuple[FileRecord, ...]:
    for name, data in files.items():
        _write(folder / name, data)
    return tuple(FileRecord(name, len(data), digest.of_bytes(data)) for name, data in files.items())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
