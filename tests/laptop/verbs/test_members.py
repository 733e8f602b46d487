"""A pool whose boxes are reached over ssh: how it looks, and what a box that is gone gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import RunOnDisk, agent_started, cell_started, from_now, held

from boxcar.laptop.project.project import Project
from boxcar.laptop.verbs import members
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import attempt, codec, control
from boxcar.shared.files.attempt import Claim

LINES = [f"configs/{cell}.yaml recon 3" for cell in "ade"]


def as_pool(project: Project, *boxes: str) -> Project:
    plan = project.plan
    cells = tuple(replace(cell, queue="all") for cell in plan.cells[: len(LINES)])
    queues = {f"all@{box}": box for box in boxes}
    known = tuple(box for box in plan.boxes if box.name in boxes)
    return replace(project, plan=replace(plan, cells=cells, queues=queues, boxes=known))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    """Cell a runs on box-a, d on box-b, and nobody has e."""
    lines = {"all@box-a": LINES, "all@box-b": LINES}
    made = make_far_run(tmp_path, monkeypatch, lines=lines)
    made.site.project = as_pool(made.site.project, "box-a", "box-b")
    made.agents = RunOnDisk(as_pool(made.agents.project, "box-a", "box-b"))
    for cell, box in (("a", "box-a"), ("d", "box-b")):
        queue = f"all@{box}"
        claim = codec.to_document(Claim(cell, queue, box, from_now(0)))
        atomic.create_once(made.agents.site.tier.claim(cell), claim)
        made.agents.say(queue, agent_started(), cell_started(cell))
    return made


def owner(run: FarRun, cell: str) -> tuple[str, str | None]:
    claim = attempt.read_claim(run.agents.site.tier.claim(cell))
    assert claim
    return claim.queue, claim.moved_from


def test_each_member_is_a_queue_and_what_nobody_has_is_of_the_file(run):
    view = run.look()
    assert [queue.name for queue in view.queues] == ["all@box-a", "all@box-b"]
    found = {cell.name: (cell.queue, cell.box) for cell in view.cells}
    assert found == {"a": ("all@box-a", "box-a"), "d": ("all@box-b", "box-b"), "e": ("all", "")}
    assert not view.problems


def test_a_box_gives_back_only_what_a_person_calls_gone(run, capsys):
    run.look()
    with pytest.raises(InputError, match="--gone box-b: it answers, so it is not gone"):
        run.site.give_up_boxes(["box-b"])
    run.world.cut.add("box-b")
    view = run.look()
    assert owner(run, "d") == ("all@box-b", None)
    run.site.give_up_boxes(["box-b"])
    for _ in range(2):
        members.give_back(run.site, view, ["box-b"], ["all@box-a"])
        assert owner(run, "d") == ("all@box-a", "all@box-b")
        view = run.look()
    told = capsys.readouterr().err
    assert "1 unfinished cell goes to the boxes of its pool: d" in told
    assert "all@box-b: it has no unfinished cell" in told
    with pytest.raises(InputError, match="no other box is left in its pool"):
        members.give_back(run.site, view, ["box-a"], [])


def test_a_member_whose_agent_holds_its_lock_keeps_its_cells(run):
    run.world.cut.add("box-b")
    view = run.look()
    run.site.give_up_boxes(["box-b"])
    is_held = held(run.agents.site.tier.lock("all@box-b"))
    with is_held, pytest.raises(InputError, match="the agent of all@box-b is at work"):
        members.give_back(run.site, view, ["box-b"], ["all@box-a"])
    assert owner(run, "d") == ("all@box-b", None)


def test_a_member_that_left_the_job_is_drained_through_another_box_of_its_tier(run, capsys):
    run.site.project, run.site._names = as_pool(run.site.project, "box-a"), ["box-a"]
    with held(run.agents.site.tier.lock("all@box-b")):
        members.drain_left(run.site, run.look())
    assert control.wanted(run.agents.site.tier.control("all@box-b")) == control.DRAIN
    assert control.wanted(run.agents.site.tier.control("all@box-a")) == control.RUN
    assert "all@box-b: box-b is no longer in the job" in capsys.readouterr().err
    members.drain_left(run.site, run.look())
    assert "all@box-b is no longer in the job and has 1 unfinished" in capsys.readouterr().err
