from __future__ import annotations

import dataclasses
import os
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import make_plan

from boxcar.shared import timestamp
from boxcar.shared.artifacts.resume_match import chosen
from boxcar.shared.artifacts.seen_checkpoint import Seen, SeenFile
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.journal import Journal
from boxcar.shared.paths import ScratchPaths
from onbox.checkpoint import older_checkpoint
from onbox.checkpoint.older_checkpoint import AT_ONCE_S, RESUME, Failed, to_try
from onbox.judging.verdict import Action, Verdict
from onbox.queue.reporter import Reporter

BROKEN = Verdict(Action.FAIL, "EXIT1", "RuntimeError: unexpected key", ())
STEPS = "checkpoints/step_*.pt"


def seen(name: str, mtime_ns: int = 10, path: str = "") -> Seen:
    return Seen(name, Path(path or name), (SeenFile(name, 1, mtime_ns, 1),))


FAILED = Failed(
    verdict=BROKEN,
    seconds=12.0,
    began_ns=100,
    was_told_to_stop=False,
    last_report_ns=0,
    checkpoints=(seen("step_2.pt"), seen("step_1.pt")),
)


def test_of_an_attempt_that_failed_at_once_the_next_older_one_is_tried():
    older = to_try(FAILED)
    assert older and older.name == "step_1.pt"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"seconds": AT_ONCE_S}, id="it ran for long"),
        pytest.param({"last_report_ns": 101}, id="it reported a step"),
        pytest.param({"checkpoints": (seen("step_3.pt", 101), seen("step_2.pt"))}, id="it saved"),
        pytest.param({"checkpoints": (seen("step_2.pt"),)}, id="there is no older one"),
        pytest.param({"checkpoints": ()}, id="there is none"),
        pytest.param({"was_told_to_stop": True}, id="it was told to stop"),
        pytest.param({"verdict": Verdict(Action.RETRY, "137-N")}, id="it was killed"),
        pytest.param({"verdict": Verdict(Action.RETRY, "EXIT1")}, id="it is tried again anyway"),
        pytest.param({"verdict": Verdict(Action.STOP_QUEUE, "U22")}, id="the box is bad"),
        pytest.param({"verdict": Verdict(Action.FAIL, "M2")}, id="it needs more memory"),
        pytest.param({"verdict": Verdict(Action.FAIL, "NO-ART")}, id="it ended well"),
        pytest.param(
            {"verdict": Verdict(Action.FAIL, "EXIT42", is_final=True)}, id="it wants no retry"
        ),
    ],
)
def test_otherwise_the_verdict_stands(changes: dict[str, Any]):
    assert to_try(dataclasses.replace(FAILED, **changes)) is None


def test_a_link_and_the_checkpoint_that_it_names_are_one():
    twins = (seen("last-v1.ckpt", path="e2"), seen("e2.ckpt", path="e2"), seen("e1.ckpt"))
    failed = dataclasses.replace(FAILED, checkpoints=twins)
    found = older_checkpoint.retry("c", failed, Path("/scratch/unloaded"))
    assert found and found.aside == ("last-v1.ckpt", "e2.ckpt")
    assert "It is tried once from e1.ckpt" in found.reason


@dataclasses.dataclass
class Cell:
    """A cell on disk, as its agent has it."""

    scratch: ScratchPaths
    journal: Path
    reporter: Reporter

    def restart(self) -> None:
        """Another agent takes over."""
        self.reporter = open_reporter(self.journal)
        self.reporter.say("agent.started", pid=1, release="r")

    def fail(self, number: int, verdict: Verdict = BROKEN, resume: str = STEPS) -> Verdict:
        """The verdict on this attempt, which began now and failed at once."""
        self.reporter.say("cell.started", cell="c", attempt=number)
        began = timestamp.utc(datetime.fromtimestamp(time.time(), timezone.utc))
        done = Done("c", number, 1, began, began, 3.0, 0, False, "r")
        place: Any = SimpleNamespace(scratch=self.scratch, plan=make_plan(resume=resume))
        return older_checkpoint.instead(place, "c", done, verdict, self.reporter)

    def retry(self, number: int, verdict: Verdict) -> None:
        about = {"failure": verdict.failure, "reason": verdict.reason}
        self.reporter.say("cell.retried", cell="c", attempt=number, **about, aside=verdict.aside)

    def begin(self, number: int) -> str | None:
        """Set the stage of this attempt; what it would resume from."""
        older_checkpoint.put_aside(self.scratch, "c", number, self.reporter)
        path = chosen(self.out, STEPS)
        return path.name if path else None

    @property
    def out(self) -> Path:
        return self.scratch.out("c")

    @property
    def warnings(self) -> list[str]:
        events = self.reporter.state().warnings
        return [event.data["text"] for event in events if event.cell == "c"]


def open_reporter(path: Path) -> Reporter:
    return Reporter(Journal(path, {"run": "r", "queue": "q", "box": "b"}), None)


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    made = Cell(ScratchPaths(tmp_path, "r"), tmp_path / "j", open_reporter(tmp_path / "j"))
    (made.out / "checkpoints").mkdir(parents=True)
    for step in (1, 2, 3):
        save(made, step, age_s=60 - step)
    return made


def save(cell: Cell, step: int, age_s: float = 0.0) -> None:
    path = cell.out / f"checkpoints/step_{step}.pt"
    path.write_bytes(b"%d" % step)
    os.utime(path, (time.time() - age_s,) * 2)


def names(cell: Cell) -> list[str]:
    return sorted(path.name for path in (cell.out / "checkpoints").iterdir())


def test_the_next_older_one_is_tried_once_and_said_and_the_newest_is_kept(cell: Cell):
    verdict = cell.fail(1)
    assert (verdict.action, verdict.failure) == (Action.RETRY, RESUME)
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_3.pt"], "nothing before it is said"
    [text] = cell.warnings
    assert "began from checkpoints/step_3.pt: RuntimeError: unexpected key" in text
    assert "tried once from checkpoints/step_2.pt" in text
    cell.retry(1, verdict)
    assert cell.begin(2) == cell.begin(2) == "step_2.pt"
    kept = cell.scratch.unloaded("c") / "1/checkpoints/step_3.pt"
    assert kept.read_bytes() == b"3"


def test_where_the_older_one_fails_too_the_newest_comes_back_and_the_cell_fails(cell: Cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    verdict = cell.fail(2)
    assert (verdict.action, verdict.failure) == (Action.FAIL, "EXIT1")
    assert "checkpoints/step_3.pt is in its place again" in verdict.reason
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_3.pt"]
    assert len(cell.warnings) == 1


def test_also_where_the_agent_died_in_between(cell: Cell):
    cell.retry(1, cell.fail(1))
    cell.restart()
    assert cell.begin(2) == "step_2.pt"
    cell.restart()
    assert cell.fail(2).action is Action.FAIL
    assert cell.fail(2).reason == BROKEN.reason, "what came back comes back once"
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_3.pt"]


def test_where_the_older_one_loads_the_newest_stays_aside_until_the_cell_is_verified(cell: Cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    save(cell, 4)
    time.sleep(0.002)  # files and the record of an attempt are told apart by the millisecond
    assert cell.fail(3).failure == "EXIT1", "one retry of this kind for an agent"
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_4.pt"]
    assert cell.begin(4) == "step_4.pt"
    shutil.rmtree(cell.scratch.unloaded("c"))
    assert not cell.scratch.unloaded("c").exists()


def test_a_name_that_the_cell_has_used_since_stays_the_cells(cell: Cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    save(cell, 3, age_s=60)
    (cell.out / "checkpoints/step_3.pt").write_bytes(b"new")
    os.utime(cell.out / "checkpoints/step_3.pt", (time.time() - 60,) * 2)
    assert cell.fail(2).action is Action.FAIL
    assert (cell.out / "checkpoints/step_3.pt").read_bytes() == b"new"


def test_what_was_cut_off_while_it_was_saved_is_not_what_it_began_from(cell: Cell):
    (cell.out / "checkpoints/step_3.pt").write_bytes(b"")
    cell.fail(1)
    [text] = cell.warnings
    assert "began from checkpoints/step_2.pt" in text
    assert "tried once from checkpoints/step_1.pt" in text


def test_a_plain_path_has_no_older_one(cell: Cell):
    assert cell.fail(1, resume="checkpoints/step_3.pt") is BROKEN
