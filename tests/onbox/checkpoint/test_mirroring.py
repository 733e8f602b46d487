from __future__ import annotations

import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import make_plan
from stepping import see_through
from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.shared.artifacts.resume_match import chosen
from boxcar.shared.artifacts.seen_checkpoint import Seen, SeenFile
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.journal import Journal
from boxcar.shared.paths import ScratchPaths
from onbox.checkpoint import live_checkpoint, older_checkpoint
from onbox.checkpoint.live_checkpoint import Mirroring
from onbox.checkpoint.older_checkpoint import AT_ONCE_S, RESUME, Failed, to_try
from onbox.judging.verdict import Action, Verdict
from onbox.queue.reporter import Reporter

SOON_S = 0.01


class Slow:
    """A mirror whose copy has begun and does not end before it may go on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.began, self.may_go_on = threading.Event(), threading.Event()
        self.copies: list[str] = []
        self.has_newer = False
        self._error = error

    @property
    def due_in_s(self) -> float:
        return 0.0 if not self.began.is_set() else 10 * LIMIT_S

    def tick(self, on_chunk: Callable[[int], None]) -> None:
        self.began.set()
        assert self.may_go_on.wait(LIMIT_S)
        on_chunk(1)
        if self._error:
            raise self._error
        self.copies.append("due")

    def is_behind(self) -> bool:
        return self.has_newer

    def flush(self, on_chunk: Callable[[int], None]) -> None:
        on_chunk(1)
        self.copies.append("newest")


@pytest.fixture
def slow() -> Slow:
    return Slow()


def begun(
    slow: Slow, failed: list[Exception] | None = None, bytes_per_s: float | None = None
) -> Mirroring:
    fail = (failed if failed is not None else []).append
    live = Mirroring(slow, fail, bytes_per_s)  # type: ignore[arg-type]
    assert slow.began.wait(LIMIT_S)
    return live


def test_a_cell_that_has_succeeded_does_not_wait_for_the_copy_which_is_given_up(slow):
    failed: list[Exception] = []
    live = begun(slow, failed)
    live.give_up()  # returns, although the copy is under way
    slow.may_go_on.set()
    live.wait()
    assert (slow.copies, failed) == ([], [])


def test_whoever_removes_the_mirror_waits_until_nothing_is_written_there(slow):
    live = begun(slow)
    live.give_up()
    waits = threading.Thread(target=live.wait, daemon=True)
    waits.start()
    waits.join(SOON_S)
    assert waits.is_alive()
    slow.may_go_on.set()
    waits.join(LIMIT_S)
    assert not waits.is_alive()


def test_of_a_cell_that_failed_the_copy_under_way_is_the_last_and_the_heartbeat_goes_on(slow):
    live, ticks = begun(slow), []

    def tick() -> None:
        ticks.append(1)
        slow.may_go_on.set()

    see_through(live.finish(), tick)
    assert slow.copies == ["due"]
    assert ticks


def test_at_a_stop_the_newest_checkpoint_follows_the_copy_under_way(slow):
    live = begun(slow)
    see_through(live.flush(), slow.may_go_on.set)
    see_through(live.finish())
    assert slow.copies == ["due", "newest"]


def test_a_copy_that_cannot_be_made_is_told_and_costs_nothing_else():
    failed: list[Exception] = []
    slow = Slow(OSError(5, "Input/output error"))
    slow.may_go_on.set()
    live = begun(slow, failed)
    see_through(live.flush())
    see_through(live.finish())
    assert [str(error) for error in failed] == ["[Errno 5] Input/output error"]
    assert slow.copies == ["newest"]


def test_at_a_stop_the_copy_of_an_older_checkpoint_is_dropped_for_the_newest(slow):
    live = begun(slow)
    slow.has_newer = True
    assert see_through(live.flush(), slow.may_go_on.set)
    assert slow.copies == ["newest"]


def test_what_does_not_fit_is_given_up_when_the_box_may_be_gone(slow):
    failed: list[Exception] = []
    live = begun(slow, failed)
    assert not see_through(live.flush(until=0.0))
    assert live.was_late
    slow.may_go_on.set()
    live.wait()
    assert (slow.copies, failed) == ([], [])


def test_at_a_stop_no_copy_keeps_to_a_pace(slow):
    live = begun(slow, bytes_per_s=1e-6)  # its one byte takes ten days
    slow.may_go_on.set()
    time.sleep(SOON_S)
    assert slow.copies == []
    assert see_through(live.flush())
    assert slow.copies == ["due", "newest"]


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a mirror's thread was told, without what it already was."""
    told = ["usual"]
    for name, word in (("give_way", "gives way"), ("be_usual", "usual")):
        say = lambda word=word: word != told[-1] and told.append(word)  # noqa: E731
        monkeypatch.setattr(live_checkpoint.io_class, name, say)
    return told


def test_a_copy_beside_a_training_gives_way_to_all_who_wait_for_the_disk(slow, classes):
    live = begun(slow)
    assert classes == ["usual", "gives way"]
    slow.may_go_on.set()
    see_through(live.finish())
    assert classes == ["usual", "gives way", "usual"]


def test_a_copy_that_is_waited_for_gives_way_no_more(slow, classes):
    live = begun(slow)
    at_its_next_block: list[str] = []
    slow.copies = SimpleNamespace(append=lambda _: at_its_next_block.append(classes[-1]))
    see_through(live.finish(), slow.may_go_on.set)
    assert at_its_next_block == ["usual"]


def test_a_disk_that_is_never_idle_keeps_no_checkpoint_from_the_tier(slow, classes, monkeypatch):
    monkeypatch.setattr(live_checkpoint, "GIVES_WAY_S", -1.0)
    at_its_next_block: list[str] = []
    slow.copies = SimpleNamespace(append=lambda _: at_its_next_block.append(classes[-1]))
    slow.may_go_on.set()
    live = begun(slow)
    see_through(live.finish())
    assert at_its_next_block == ["usual"]


def test_a_copy_beside_a_training_takes_no_more_than_the_profile_gives_it():
    assert live_checkpoint.ahead_s(100, 0.0, 100.0) == 1.0
    assert live_checkpoint.ahead_s(200, 3.0, 100.0) == 0.0
    assert live_checkpoint.ahead_s(500, 3.0, 100.0) == 2.0
    assert live_checkpoint.ahead_s(500, 3.0, None) == 0.0


# --- an older one


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
def test_otherwise_the_verdict_stands(changes):
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


def test_the_next_older_one_is_tried_once_and_said_and_the_newest_is_kept(cell):
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


def test_where_the_older_one_fails_too_the_newest_comes_back_and_the_cell_fails(cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    verdict = cell.fail(2)
    assert (verdict.action, verdict.failure) == (Action.FAIL, "EXIT1")
    assert "checkpoints/step_3.pt is back in its place" in verdict.reason
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_3.pt"]
    assert len(cell.warnings) == 1


def test_also_where_the_agent_died_in_between(cell):
    cell.retry(1, cell.fail(1))
    cell.restart()
    assert cell.begin(2) == "step_2.pt"
    cell.restart()
    assert cell.fail(2).action is Action.FAIL
    assert cell.fail(2).reason == BROKEN.reason, "what came back comes back once"
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_3.pt"]


def test_where_the_older_one_loads_the_newest_stays_aside_until_the_cell_is_verified(cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    save(cell, 4)
    time.sleep(0.002)  # files and the record of an attempt are told apart by the millisecond
    assert cell.fail(3).failure == "EXIT1", "one retry of this kind for an agent"
    assert names(cell) == ["step_1.pt", "step_2.pt", "step_4.pt"]
    assert cell.begin(4) == "step_4.pt"
    shutil.rmtree(cell.scratch.unloaded("c"))
    assert not cell.scratch.unloaded("c").exists()


def test_a_name_that_the_cell_has_used_since_stays_the_cells(cell):
    cell.retry(1, cell.fail(1))
    cell.begin(2)
    save(cell, 3, age_s=60)
    (cell.out / "checkpoints/step_3.pt").write_bytes(b"new")
    os.utime(cell.out / "checkpoints/step_3.pt", (time.time() - 60,) * 2)
    assert cell.fail(2).action is Action.FAIL
    assert (cell.out / "checkpoints/step_3.pt").read_bytes() == b"new"


def test_what_was_cut_off_while_it_was_saved_is_not_what_it_began_from(cell):
    (cell.out / "checkpoints/step_3.pt").write_bytes(b"")
    cell.fail(1)
    [text] = cell.warnings
    assert "began from checkpoints/step_2.pt" in text
    assert "tried once from checkpoints/step_1.pt" in text


def test_a_plain_path_has_no_older_one(cell):
    assert cell.fail(1, resume="checkpoints/step_3.pt") is BROKEN


def test_a_folder_is_put_aside_and_comes_back_whole(tmp_path):
    scratch = ScratchPaths(tmp_path, "r")
    folder = scratch.out("c") / "checkpoint-5"
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"5")
    older_checkpoint.move_aside(scratch, "c", 1, ["checkpoint-5", "gone"])
    assert list(scratch.out("c").iterdir()) == []
    assert older_checkpoint.move_back(scratch, "c", 1, 1) == ["checkpoint-5"]
    assert (folder / "model.pt").read_bytes() == b"5"


def test_nothing_is_put_aside_from_outside_of_the_cell(tmp_path):
    scratch = ScratchPaths(tmp_path, "r")
    (tmp_path / "secret").write_bytes(b"x")
    with pytest.raises(DamagedError):
        older_checkpoint.move_aside(scratch, "c", 1, ["../../../../../secret"])
