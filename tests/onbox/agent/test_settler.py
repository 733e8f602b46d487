from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from boxcar.shared import state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import checked_tree
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.journal import Journal, read_journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.plan import Artifact, Box, Plan
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent import settler
from onbox.agent.settler import Settler
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter
from onbox.result import settle
from onbox.result.asked import NOT_KNOWN

CELL = CellLine(0, 1, "c", "configs/c.json", "count", 3)
NOW = "2026-11-21T02:00:00.000Z"


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "WAITS_S", (0.01, 0.01, 0.01))


@pytest.fixture
def place(tmp_path: Path, archives: Any) -> Place:
    """Attempt 1 at cell c has ended well and left m.json on scratch."""
    plan = Plan(
        run="r", profile="local", durable_dir=str(tmp_path / "tier"),
        boxes=(Box("b", str(tmp_path / "b"), ""),), queues={"q": "b"}, cells=(), command=(),
        launcher="python", nproc=1, cell_nproc={}, epochs=None, artifacts=(Artifact("m.json"),),
        resume="latest.json", scratch=("latest.json",), env={}, secrets=(), linger_s=0,
        agent_python=sys.executable, training_python=sys.executable,
    )  # fmt: skip
    release = tmp_path / ("0" * 64)
    release.mkdir()
    (release / archives.training).write_bytes(archives.files[archives.training])
    tier, scratch = DurablePaths(tmp_path / "tier", "r"), ScratchPaths(tmp_path / "b", "r")
    for folder in (*tier.folders(), scratch.out("c")):
        folder.mkdir(parents=True)
    (scratch.out("c") / "m.json").write_bytes(b'{"step": 7}')
    (scratch.out("c") / "latest.json").write_bytes(b"{}")
    scratch.log("c").write_bytes(b"epoch 1\n")
    made = Place(plan, release, archives.training, "q", "b", tier, scratch)
    write_done(made, 1)
    return made


def write_done(place: Place, attempt: int) -> None:
    done = Done("c", attempt, 0, NOW, NOW, 12.0, 0, False, place.release.name)
    place.scratch.done("c", attempt).write_bytes(codec.to_document(done))


@pytest.fixture
def reporter(place: Place) -> Reporter:
    journal = Journal(place.durable.journal("q"), {"run": "r", "queue": "q", "box": "b"})
    journal.append(
        "cell.started", cell="c", attempt=1, cfg="configs/c.json", task="count", epochs=3
    )
    journal.append("cell.succeeded", cell="c", attempt=1, seconds=12.0)
    return Reporter(journal, None)


def settles(place: Place, reporter: Reporter, **more: Any) -> Settler:
    return Settler(place, reporter, lambda cell: place, lambda cell: NOT_KNOWN, **more)


def settled(place: Place, reporter: Reporter, *attempts: int) -> list[BaseException]:
    """Hand over, wait until it is through, and give what could not be settled."""
    one = settles(place, reporter)
    for number in attempts or (1,):
        one.hand_over(CELL, number)
    one.close()
    return one.failures()


def events(place: Place) -> list[Event]:
    """Those that were said since it was handed over."""
    return list(read_journal(place.durable.journal("q")).events[2:])


def said(place: Place) -> list[str]:
    return [event.data.get("what", event.type) for event in events(place)]


def test_a_result_is_synced_then_verified_then_pruned(place, reporter):
    assert settled(place, reporter) == []
    assert said(place) == ["cell.synced", "cell.verified"]
    digest = manifest.sha256(place.durable.manifest("c"))
    found = state.replay(events(place)).cell("c").state
    assert isinstance(found, state.Verified)
    assert found.manifest_sha256 == digest
    assert events(place)[-1].data["metrics"] == {"step": 7}
    assert not (place.scratch.out("c") / "latest.json").exists()


def test_a_copy_of_a_checkpoint_that_was_given_up_leaves_its_room_to_the_result(place, reporter):
    was_published: list[bool] = []
    one = settles(
        place,
        reporter,
        wait_for_mirror=lambda cell: was_published.append(place.durable.manifest(cell).exists()),
    )
    one.hand_over(CELL, 1)
    one.close()
    assert was_published[0] is False
    assert place.durable.manifest("c").exists()


def test_how_far_a_copy_is_can_be_asked_while_it_goes_on_and_no_longer(
    place, reporter, monkeypatch
):
    one = settles(place, reporter)
    real, seen = checked_tree.copy_all, []

    def copy_all(*arguments: Any) -> Any:
        seen.append(one.copy.now)
        found = real(*arguments)
        seen.append(one.copy.now)
        return found

    monkeypatch.setattr(checked_tree, "copy_all", copy_all)
    one.hand_over(CELL, 1)
    one.close()
    size_bytes = manifest.read_manifest(place.durable.manifest("c")).size_bytes
    assert [(now.cell, now.done_bytes, now.total_bytes) for now in seen] == [
        ("c", 0, 2 * size_bytes),
        ("c", 2 * size_bytes, 2 * size_bytes),
    ]
    assert one.copy.now is None


def test_a_bad_result_is_said_and_nothing_of_it_is_pruned(place, reporter):
    (place.scratch.out("c") / "m.json").write_bytes(b"{")
    assert settled(place, reporter) == []
    assert said(place) == ["cell.synced", "cell.failed"]
    failed = events(place)[-1]
    assert failed.data["failure"] == "BAD-ART"
    assert "m.json" in failed.data["reason"]
    assert (place.scratch.out("c") / "latest.json").exists()


def test_what_cannot_be_published_as_it_is_is_kept_and_judged_anew(place, reporter):
    artifact = place.scratch.out("c") / "m.json"
    artifact.unlink()
    artifact.symlink_to("checkpoints/gone.json")
    assert settled(place, reporter) == []
    failed = reporter.state().cell("c").state
    assert isinstance(failed, state.Failed)
    assert (failed.failure, failed.is_kept) == ("UNFIT", True)
    assert failed.reason.startswith("m.json is a link to nothing. It is kept in /")
    artifact.unlink()  # half of putting it right
    assert settled(place, reporter) == []
    assert reporter.state().cell("c").state == replace(failed, at=ANY, reason=ANY)
    artifact.write_bytes(b'{"step": 7}')
    assert settled(place, reporter) == []
    assert isinstance(reporter.state().cell("c").state, state.Verified)


def test_a_kept_result_that_is_gone_with_its_record_is_run_again(place, reporter):
    (place.scratch.out("c") / "m.json").write_bytes(b"")
    assert settled(place, reporter) == []
    place.scratch.done("c", 1).unlink()
    assert settled(place, reporter) == []
    assert said(place) == ["cell.failed", "cell.retried"]


def test_what_nobody_could_check_is_kept_and_the_queue_goes_on(place, reporter, monkeypatch):
    def cannot(*_: Any) -> Any:
        raise settle.UncheckedError("c: m.json could not be checked")

    real = settle.verify
    monkeypatch.setattr(settle, "verify", cannot)
    assert settled(place, reporter) == []
    failed = reporter.state().cell("c").state
    assert isinstance(failed, state.Failed)
    assert (failed.failure, failed.is_kept) == ("UNCHECKED", True)
    monkeypatch.setattr(settle, "verify", real)
    assert settled(place, reporter) == []
    assert isinstance(reporter.state().cell("c").state, state.Verified)


def test_what_nobody_could_look_into_is_said_with_the_verification(place, reporter):
    (place.scratch.out("c") / "blob").write_bytes(b"bytes")
    here = replace(
        place, plan=replace(place.plan, artifacts=(Artifact("m.json"), Artifact("blob")))
    )
    assert settled(here, reporter) == []
    now = state.replay(events(here)).cell("c").state
    assert isinstance(now, state.Verified) and now.bytes_only == ("blob",)


def test_what_is_left_out_of_a_result_is_a_warning(place, reporter):
    (place.scratch.out("c") / "art").mkdir()
    (place.scratch.out("c") / "art/1.json").write_bytes(b"{}")
    os.mkfifo(place.scratch.out("c") / "art/pipe")
    here = replace(place, plan=replace(place.plan, artifacts=(Artifact("art"),)))
    assert settled(here, reporter) == []
    assert said(place) == ["left_out", "cell.synced", "cell.verified"]
    (warning,) = reporter.state().warnings
    assert warning.data["text"] == "c: art/pipe is a pipe; it is left out"
    published = manifest.read_manifest(place.durable.manifest("c"))
    assert published.warnings == ("art/pipe is a pipe; it is left out",)


def test_what_was_synced_before_is_not_said_again(place, reporter):
    settle.publish(place, CELL, Done("c", 1, 0, NOW, NOW, 12.0, 0, False, place.release.name))
    digest = manifest.sha256(place.durable.manifest("c"))
    reporter.say("cell.synced", cell="c", attempt=1, manifest_sha256=digest, size_bytes=1, files=1)
    assert settled(place, reporter) == []
    assert said(place) == ["cell.synced", "cell.verified"]


def test_a_tier_that_comes_back_in_time_costs_a_warning(place, reporter, monkeypatch):
    real, tries = settle.publish, []

    def fail_once(*arguments: Any, **named: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise OSError(5, "Input/output error", "tier")
        return real(*arguments, **named)

    monkeypatch.setattr(settle, "publish", fail_once)
    assert settled(place, reporter) == []
    assert said(place) == ["sync_failed", "cell.synced", "cell.verified"]


def test_a_tier_that_stays_away_is_a_failure_and_the_result_stays_on_scratch(place, reporter):
    place.durable.cells.rmdir()
    place.durable.cells.write_bytes(b"")
    failures = settled(place, reporter)
    assert len(failures) == 1
    assert isinstance(failures[0], OSError)
    assert isinstance(reporter.state().cell("c").state, state.Succeeded)
    assert (place.scratch.out("c") / "m.json").exists()
    assert (place.scratch.out("c") / "latest.json").exists()


def test_a_scratch_that_cannot_be_pruned_does_not_verify_twice(place, reporter):
    (place.durable.resume("c") / "a folder").mkdir(parents=True)
    settled(place, reporter)
    assert said(place).count("cell.synced") == 1
    assert said(place).count("cell.verified") == 1
    assert isinstance(reporter.state().cell("c").state, state.Verified)


def test_a_checker_that_does_not_run_proves_nothing(place, reporter):
    here = replace(place, plan=replace(place.plan, training_python="/bin/false"))
    assert settled(here, reporter) == []
    assert "cell.verified" not in said(place)
    assert said(place).count("cell.synced") == 1
    now = reporter.state().cell("c").state
    assert isinstance(now, state.Failed) and now.is_kept
    assert "/bin/false" in now.reason


def test_a_second_result_is_said_and_the_first_stays(place, reporter):
    settled(place, reporter)
    write_done(place, 2)
    (place.scratch.out("c") / "m.json").write_bytes(b'{"step": 8}')
    settled(place, reporter, 2)
    assert "second_result" in said(place)
    assert (place.durable.cell("c") / "m.json").read_bytes() == b'{"step": 7}'


def test_a_result_that_is_published_needs_no_scratch_any_more(place, reporter):
    settle.publish(place, CELL, Done("c", 1, 0, NOW, NOW, 12.0, 0, False, place.release.name))
    place.scratch.done("c", 1).unlink()
    assert settled(place, reporter) == []
    assert said(place) == ["cell.synced", "cell.verified"]


def test_a_result_that_went_with_its_scratch_is_a_cell_to_run_again(place, reporter):
    for path in (place.scratch.done("c", 1), place.scratch.out("c") / "m.json"):
        path.unlink()
    assert settled(place, reporter) == []
    record = reporter.state().cell("c")
    assert not isinstance(record.state, state.Succeeded)
    assert not place.durable.manifest("c").exists()


def test_results_are_settled_one_after_another(place, reporter, monkeypatch):
    inside, most = [], []

    def publish(*arguments: Any, **named: Any) -> Any:
        inside.append(threading.current_thread())
        most.append(len(inside))
        inside.pop()
        raise DamagedError("no")

    monkeypatch.setattr(settle, "publish", publish)
    assert len(settled(place, reporter, 1, 1, 1)) == 3
    assert set(most) == {1}


def test_closing_does_not_wait_for_a_disk_to_come_back(place, reporter, monkeypatch):
    monkeypatch.setattr(settler, "WAITS_S", (3600.0, 3600.0))
    place.durable.cells.rmdir()
    place.durable.cells.write_bytes(b"")
    assert len(settled(place, reporter)) == 1  # the time limit of the test is the assertion


def test_it_is_busy_until_what_came_of_it_was_asked_for(place, reporter):
    one = settles(place, reporter)
    assert not one.is_busy
    one.hand_over(CELL, 1)
    assert one.is_busy
    one.close()
    assert one.is_busy
    assert one.failures() == []
    assert not one.is_busy
