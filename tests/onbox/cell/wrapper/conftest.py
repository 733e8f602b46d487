from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gated import GATED, open_gate

from boxcar.shared.files import attempt
from boxcar.shared.files.release import RUN_ONE
from onbox.cell.wrapper import program
from onbox.cell.wrapper.ahead import Ahead


@pytest.fixture
def staged(tmp_path: Path, archives) -> Path:
    """The program in its folder, and the agent's file beside it."""
    archive = tmp_path / archives.onbox
    archive.write_bytes(archives.files[archives.onbox])
    made = program.Program(archive)
    for record in made.records():
        target = tmp_path / record.path
        target.parent.mkdir(parents=True, exist_ok=True)
        made.fetch(record, target)
    return tmp_path / program.FOLDER


class Box:
    """A run whose code is staged, and the test as its agent."""

    def __init__(self, run: Any) -> None:
        self.run, self.ahead = run, Ahead()

    def command(self, cell: str) -> list[str]:
        folder = self.run.scratch().wrapper(self.run.release.name)
        return ["bash", str(folder / RUN_ONE), *self.run.words_of_attempt(cell)]

    def start(self, cell: str) -> None:
        self.ahead.start(self.command(cell), loads_after_s=None)

    def call(self, cell: str) -> None:
        self.run.scratch().cell(cell).mkdir()
        self.ahead.call(self.command(cell))

    def let_in(self, cell: str) -> Any:
        self.call(cell)
        return self.ahead.go()

    def rc(self, cell: str) -> int:
        done = attempt.read_done(self.run.scratch().done(cell, 1))
        assert done
        return done.rc


@pytest.fixture
def box(make_run: Any) -> Iterator[Box]:
    cells = {name: {"gate": 1} for name in ("first", *"abcd")}
    run = make_run(cells, is_hurried=False, train=GATED, resume=None)
    run.durable.queue("q1").write_text("configs/first.json count 3\n")
    open_gate(run, "first")
    assert run.finish() == 0
    one = Box(run)
    yield one
    for cell in cells:
        open_gate(run, cell)
    one.ahead.close()
