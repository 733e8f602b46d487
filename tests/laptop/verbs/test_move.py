from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
)

from boxcar.laptop.common import show
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.run import moves
from boxcar.laptop.verbs.move import move
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.resume_pointer import FILE, Resume

GONE: dict[str, Any] = {"gone": ["box-a"], "because": "the host left the market"}


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str = "shared") -> FarRun:
    """Cell a of queue_1 runs on box-a, whose agent is dead; the laptop has the queue files."""
    run = make_far_run(tmp_path, monkeypatch, scope=scope)
    files = {}
    for queue in run.project.plan.queues:
        files[queue] = tmp_path / "laptop" / f"{queue}.txt"
        files[queue].parent.mkdir(exist_ok=True)
        files[queue].write_bytes(run.agents.site.tier.queue(queue).read_bytes())
    run.project = replace(run.project, queue_files=files)
    run.site.project = run.project
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    claimed(run.agents, Claim("a", "queue_1", "box-a", from_now(0)))
    return run


def claimed(agents: RunOnDisk, claim: Claim) -> None:
    atomic.write_whole(agents.site.tier.claim(claim.cell), codec.to_document(claim))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    return make(tmp_path, monkeypatch)


def owner(agents: RunOnDisk) -> Claim:
    claim = attempt.read_claim(agents.site.tier.claim("a"))
    assert claim
    return claim


def lines(run: FarRun, queue: str) -> list[str]:
    there = run.agents.site.tier.queue(queue).read_text()
    assert run.project.queue_files[queue].read_text() == there
    return there.splitlines()


def of_a(run: FarRun) -> Any:
    return next(cell for cell in run.look().cells if cell.name == "a")


def test_a_cell_of_a_stopped_box_goes_to_the_other_queue_with_its_claim_and_its_line(
    run: FarRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert move(run.project, cell="a", queue="queue_2", as_json=True) == 0
    assert (owner(run.agents).queue, owner(run.agents).moved_from) == ("queue_2", "queue_1")
    assert lines(run, "queue_1") == ["# configs/a.yaml recon 3", "configs/b.yaml [red] 3"]
    assert lines(run, "queue_2") == ["configs/c.yaml seg 3", "configs/a.yaml recon 3"]
    said = capsys.readouterr()
    assert json.loads(said.out) == {
        "format": "boxcar.move/1",
        "cell": "a",
        "from": "queue_1",
        "to": "queue_2",
    }
    assert "starts over: none of its checkpoints can be reached" in said.err
    assert "launch --box box-b" in said.err
    assert (of_a(run).queue, of_a(run).box, of_a(run).word) == ("queue_2", "box-b", "queued")


def test_moved_again_is_refused(run: FarRun) -> None:
    move(run.project, cell="a", queue="queue_2")
    claim = owner(run.agents)
    with pytest.raises(InputError, match=r"^a is already in queue_2$"):
        move(run.project, cell="a", queue="queue_2")
    assert owner(run.agents) == claim and len(lines(run, "queue_2")) == 2


def test_a_run_that_was_never_launched_has_nothing_to_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_far_run(tmp_path, monkeypatch)
    files = {queue: tmp_path / f"{queue}.txt" for queue in run.project.plan.queues}
    for queue, file in files.items():
        file.write_bytes(run.agents.site.tier.queue(queue).read_bytes())
    run.site.project = run.project = replace(run.project, queue_files=files)
    with pytest.raises(InputError, match="was never launched: move the line of a by hand"):
        move(run.project, cell="a", queue="queue_2")


def test_the_new_queues_failure_counts_more_than_the_dead_ones_running(run: FarRun) -> None:
    move(run.project, cell="a", queue="queue_2")
    claim = ("cell.claimed", {"cell": "a", "from": "queue_1"})
    run.agents.say("queue_2", agent_started(), claim, cell_started("a"), cell_failed("a"))
    assert (of_a(run).word, of_a(run).queue) == ("failed", "queue_2")


def test_it_says_from_which_step_the_cell_goes_on(run: FarRun) -> None:
    run.agents.say("queue_1", cell_progress("a", 40))
    pointer = Resume("a", 1, from_now(1), "latest.pth", FileRecord("1-l", 1, "ab" * 32))
    folder = run.agents.site.tier.resume("a")
    folder.mkdir(parents=True)
    atomic.write_whole(folder / FILE, codec.to_document(pointer))
    move(run.project, cell="a", queue="queue_2")
    [said] = [text for text in run.look().problems if text.startswith("a: moved")]
    assert f"resumes from its checkpoint of {pointer.at}, from step 40 or later" in said


def test_where_no_event_told_a_step_the_last_one_that_was_seen_is_said(run: FarRun) -> None:
    run.agents.beat("queue_1", from_now(0), cell="a", progress={"step": 41})
    pointer = Resume("a", 1, from_now(1), "latest.pth", FileRecord("1-l", 1, "ab" * 32))
    folder = run.agents.site.tier.resume("a")
    folder.mkdir(parents=True)
    atomic.write_whole(folder / FILE, codec.to_document(pointer))
    move(run.project, cell="a", queue="queue_2")
    [said] = [text for text in run.look().problems if text.startswith("a: moved")]
    assert said.endswith(f"its checkpoint of {pointer.at}; the last known step is 41")


def test_while_the_agent_or_the_attempt_lives_nothing_is_moved(run: FarRun) -> None:
    for path in (
        run.agents.site.tier.lock("queue_1"),
        run.agents.project.scratch("box-a").log("a"),
    ):
        with held(path), pytest.raises(InputError, match="running on box-a, so a was not moved"):
            move(run.project, cell="a", queue="queue_2")
    assert owner(run.agents).queue == "queue_1" and len(lines(run, "queue_2")) == 1


def test_a_cell_that_waits_leaves_the_queue_of_an_agent_that_is_at_work(
    run: FarRun, capsys: pytest.CaptureFixture[str]
) -> None:
    with held(run.agents.site.tier.lock("queue_1")):
        assert move(run.project, cell="b", queue="queue_2") == 0
        assert move(run.project, cell="b", queue="queue_2") == 0
    claim = attempt.read_claim(run.agents.site.tier.claim("b"))
    assert claim and (claim.queue, claim.moved_from) == ("queue_2", "queue_1")
    assert lines(run, "queue_1") == ["configs/a.yaml recon 3", "# configs/b.yaml [red] 3"]
    assert lines(run, "queue_2") == ["configs/c.yaml seg 3", "configs/b.yaml [red] 3"]


def test_a_cell_that_its_agent_begins_at_that_moment_stays_with_its_line(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onbox.answers.move_claim.PATIENCE_S", 0.1)
    before = {queue: lines(run, queue) for queue in ("queue_1", "queue_2")}

    def begin(box: str, told: dict[str, Any]) -> None:
        if not run.agents.site.tier.claim("b").exists():
            claimed(run.agents, Claim("b", "queue_1", "box-a", from_now(0)))

    run.world.change = begin
    with held(run.agents.site.tier.lock("queue_1")), pytest.raises(InputError, match="at work"):
        move(run.project, cell="b", queue="queue_2")
    assert {queue: lines(run, queue) for queue in before} == before
    claim = attempt.read_claim(run.agents.site.tier.claim("b"))
    assert claim and claim.queue == "queue_1"


def test_a_box_that_does_not_answer_is_no_dead_one_until_a_person_says_so(run: FarRun) -> None:
    run.world.cut.add("box-a")
    with pytest.raises(InputError, match="box-a does not answer and may still be running queue_1"):
        move(run.project, cell="a", queue="queue_2")
    assert owner(run.agents).queue == "queue_1"
    with pytest.raises(InputError, match="needs a reason"):
        move(run.project, cell="a", queue="queue_2", gone=["box-a"])
    assert move(run.project, cell="a", queue="queue_2", **GONE) == 0
    assert owner(run.agents).queue == "queue_2"


def test_a_box_that_answers_is_not_gone(run: FarRun) -> None:
    with pytest.raises(InputError, match="it answers, so it is not gone"):
        move(run.project, cell="a", queue="queue_2", **GONE)


@pytest.mark.parametrize(
    ("cell", "queue", "told"),
    [("z", "queue_2", "no cell 'z'"), ("a", "queue_9", "no queue 'queue_9'")],
)
def test_an_unknown_name_moves_nothing(run: FarRun, cell: str, queue: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        move(run.project, cell=cell, queue=queue)


def test_a_cell_that_is_published_stays(run: FarRun) -> None:
    run.agents.say("queue_1", cell_verified("a"))
    with pytest.raises(InputError, match="a is already published"):
        move(run.project, cell="a", queue="queue_2")


# --- where each box has a tier of its own


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FarRun, RunOnDisk]:
    """The run, and what lies on box-b's own tier. box-a was seen, and is cut off."""
    run = make(tmp_path, monkeypatch, EACH_BOX)
    plan = replace(run.agents.project.plan, durable_dir=str(tmp_path / "tier-b"))
    of_b = RunOnDisk(replace(run.agents.project, plan=plan))
    for path in of_b.site.tier.folders():
        path.mkdir(parents=True, exist_ok=True)
    queue = run.agents.site.tier.queue("queue_2")
    queue.rename(of_b.site.tier.queue("queue_2"))
    run.world.tiers["box-b"] = tmp_path / "tier-b"
    run.look()
    run.world.cut.add("box-a")
    return run, of_b


def raise_cut(box: str, question: Any) -> Any:
    raise TemporaryError("the connection was lost")


def test_a_box_with_its_own_tier_is_told_when_it_is_back_and_named_until_then(
    apart: tuple[FarRun, RunOnDisk],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, of_b = apart
    assert move(run.project, cell="a", queue="queue_2", **GONE) == 0
    assert (owner(of_b).queue, owner(of_b).moved_from) == ("queue_2", "queue_1")
    assert of_b.site.tier.queue("queue_2").read_text().endswith("configs/a.yaml recon 3\n")
    assert "a has moved to queue_2, but box-a has not been told" in capsys.readouterr().err
    assert owner(run.agents).queue == "queue_1"
    assert (of_a(run).queue, of_a(run).word) == ("queue_2", "queued")
    assert any("box-a has not been told" in note for note in run.look().roster.notes)
    with pytest.raises(TemporaryError, match="box-a must first be told"):
        moves.refuse_untold(run.site, "queue_1")
    run.world.cut.clear()
    again = SshSite(run.project, print)
    again.refresh()
    with monkeypatch.context() as cut:
        cut.setattr(again, "ask", raise_cut)
        moves.tell_boxes(again, show.say)
    assert (
        "could not tell box-a that a has moved: the connection was lost" in capsys.readouterr().err
    )
    assert moves.untold(again) and owner(run.agents).queue == "queue_1"
    moves.tell_boxes(again, show.say)
    assert owner(run.agents) == owner(of_b)
    assert "box-a has been told that a now belongs to queue_2" in capsys.readouterr().err
    assert moves.untold(again) == []
    moves.refuse_untold(again, "queue_1")


def test_a_box_that_was_stopped_is_told_at_once(
    apart: tuple[FarRun, RunOnDisk], capsys: pytest.CaptureFixture[str]
) -> None:
    run, of_b = apart
    run.world.cut.clear()
    assert move(run.project, cell="a", queue="queue_2") == 0
    assert owner(run.agents) == owner(of_b)
    assert moves.untold(run.site) == []


def test_a_move_that_the_old_box_refuses_is_not_on_record(
    apart: tuple[FarRun, RunOnDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent started between our look and our question."""
    run, of_b = apart
    run.world.cut.clear()
    monkeypatch.setattr("onbox.answers.move_claim.PATIENCE_S", 0.1)
    monkeypatch.setattr("boxcar.laptop.verbs.move._refuse_at_work", lambda site, view, cell: None)
    with held(run.agents.site.tier.lock("queue_1")), pytest.raises(InputError, match="is at work"):
        move(run.project, cell="a", queue="queue_2")
    assert moves.read_moves(run.project.results) == ()
    assert not of_b.site.tier.claim("a").exists()
