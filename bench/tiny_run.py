"""A real run of plain Python cells on this machine, whose agent waits for more lines.

Hundred files of code, JSON artifacts, no torch. Its cells say when their script began and ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.project import open_project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs import launch, stop
from boxcar.shared import timestamp
from boxcar.shared.files import journal
from boxcar.shared.files.journal_chain import Event

CODE_FILES = 100
WITHIN_S = 300
SCRIPT = """\
import time
began = time.time()  # what it imports is not the queue's
import json, sys
with open(sys.argv[1] + "/m.json", "w") as file:
    json.dump({"began": began, "ended": time.time()}, file)
"""
_JOB = {
    "name": "bench",
    "code": "code",
    "command": "cell.py {out}",
    "launcher": "python",
    "nproc_per_node": 1,
    "queues": {"queue.txt": "box-a"},
    "artifacts": ["m.json"],
    "linger_s": 600,
}


class TinyRun:
    """`with TinyRun(folder) as run`: the agent of its only queue is up within, and ended after."""

    def __init__(
        self,
        folder: Path,
        script: str = SCRIPT,
        job: Mapping[str, object] | None = None,
        *,
        code_files: int = CODE_FILES,
        above: str = "",
    ) -> None:
        """`job` is what its job.yaml says otherwise, or beside the usual; `above` are lines above
        that of the first cell.
        """
        self.folder = folder
        self.script = folder / "code/cell.py"
        self._write_code(script, code_files)
        (folder / "job.yaml").write_text(yaml.safe_dump(_JOB | dict(job or {})))
        (folder / "queue.txt").write_text(f"{above}c.json t name=first\n")
        self.project = open_project(folder / "job.yaml", "local")

    def __enter__(self) -> TinyRun:
        launch.launch(self.project, environ={})
        self.wait_for(["first"])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stop.stop(self.project, queues=None)

    @property
    def pid(self) -> int:
        """The agent's."""
        looked = look_at_run(LocalSite(self.project, print), timestamp.utc_now())
        session = looked.queue("queue").session
        assert session
        return session.pid

    @property
    def scratch(self) -> Path:
        """That of the run on its box."""
        return Path(self.project.plan.box("box-a").data_dir) / "boxcar" / self.project.plan.run

    def append(self, cells: Sequence[str]) -> None:
        with self.project.on_tier.queue("queue").open("a") as file:
            file.write("".join(f"c.json t name={cell}\n" for cell in cells))

    def wait_for(self, cells: Sequence[str]) -> None:
        """Until all are verified. Raises TimeoutError."""
        deadline = time.monotonic() + WITHIN_S
        while not set(cells) <= {e.cell for e in self.events() if e.type == "cell.verified"}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{', '.join(cells)} not verified within {WITHIN_S} s")
            time.sleep(0.3)

    def events(self) -> tuple[Event, ...]:
        return journal.read_journal(self.project.on_tier.journal("queue")).events

    def result(self, cell: str) -> Any:
        return json.loads((self.project.on_tier.cell(cell) / "m.json").read_text())

    def done(self, cell: str) -> Path:
        """The record of its first attempt."""
        return self.scratch / "cells" / cell / "done-1.json"

    def _write_code(self, script: str, files: int) -> None:
        for number in range(files):
            path = self.folder / f"code/lib{number % 10}/module_{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"x = {number}\n" * 50)
        self.script.write_text(script)
        (self.folder / "code/c.json").write_text("{}")
