"""What boxes without a shared tier wait for is evened out, and only what waits."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import RunOnDisk, agent_started, cell_started, from_now, held

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.verbs.even_out import even_out, moves_to_even
from boxcar.shared.disk import atomic
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.plan import EACH_BOX

A, B = "all-box-a", "all-box-b"


@pytest.mark.parametrize(
    ("waiting", "can_take", "given"),
    [
        ({A: ["1", "2", "3", "4"], B: []}, {A, B}, [("4", A, B), ("3", A, B)]),
        ({A: ["1"], B: []}, {A, B}, []),
        ({A: ["1", "2", "3", "4"], B: []}, {A}, []),
        ({A: [], B: ["1", "2"]}, {A}, [("2", B, A)]),
        ({A: ["1", "2"]}, set(), []),
        ({}, set(), []),
    ],
)
def test_the_last_of_the_longest_go_until_none_has_two_fewer(waiting, can_take, given):
    assert moves_to_even(waiting, can_take) == given


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FarRun, RunOnDisk]:
    """box-a runs a, and d, e, f wait there; box-b has nothing, on a tier of its own."""
    lines = {A: [f"configs/{cell}.yaml recon 3" for cell in "adef"], B: []}
    made = make_far_run(tmp_path, monkeypatch, lines=lines, scope=EACH_BOX)
    of_b = RunOnDisk(
        replace(
            made.agents.project,
            plan=replace(made.agents.project.plan, durable_dir=str(tmp_path / "tier-b")),
        )
    )
    for path in of_b.site.tier.folders():
        path.mkdir(parents=True, exist_ok=True)
    made.agents.site.tier.queue(B).rename(of_b.site.tier.queue(B))
    made.world.tiers["box-b"] = tmp_path / "tier-b"
    files = {queue: tmp_path / "laptop" / f"{queue}.txt" for queue in (A, B)}
    files[A].parent.mkdir(exist_ok=True)
    files[A].write_bytes(made.agents.site.tier.queue(A).read_bytes())
    files[B].write_bytes(b"")
    job = Job.model_validate(
        {
            "name": made.project.plan.run,
            "command": "x",
            "queues": {"all.txt": ["box-a", "box-b"]},
            "artifacts": [],
        }
    )
    profile = load_profile("runpod", tmp_path)
    made.project = replace(made.project, queue_files=files, job=job, profile=profile)
    made.site.project = made.project
    made.agents.say(A, agent_started(), cell_started("a"))
    claim = codec.to_document(Claim("a", A, "box-a", from_now(0)))
    atomic.write_whole(made.agents.site.tier.claim("a"), claim)
    of_b.say(B, agent_started())
    return made, of_b


def owners(one: RunOnDisk) -> dict[str, str]:
    found = {cell: attempt.read_claim(one.site.tier.claim(cell)) for cell in "adef"}
    return {cell: claim.queue for cell, claim in found.items() if claim}


def at_work(*each: tuple[RunOnDisk, str]) -> ExitStack:
    stack = ExitStack()
    for one, queue in each:
        stack.enter_context(held(one.site.tier.lock(queue)))
    return stack


def test_cells_that_wait_go_to_the_box_that_has_none_and_what_runs_stays(run, capsys):
    made, of_b = run
    with at_work((made.agents, A), (of_b, B)):
        assert even_out(made.site, made.look())
        assert "f waits on box-b now, which has less to do" in capsys.readouterr().err
        assert owners(of_b) == {"f": B} and owners(made.agents) == {"a": A, "f": B}
        assert of_b.site.tier.queue(B).read_text() == "configs/f.yaml recon 3\n"
        assert "# configs/f.yaml recon 3" in made.agents.site.tier.queue(A).read_text()
        assert not even_out(made.site, made.look())


def test_a_box_whose_agent_has_ended_gets_nothing_unless_it_is_started(run):
    made, of_b = run
    with at_work((made.agents, A)):
        assert not even_out(made.site, made.look())
        assert even_out(made.site, made.look(), [B])
    assert owners(of_b) == {"f": B}


def test_a_silent_box_keeps_what_it_has(run):
    made, of_b = run
    made.look()
    made.world.cut.add("box-a")
    with at_work((made.agents, A), (of_b, B)):
        assert not even_out(made.site, made.look())
    assert owners(of_b) == {}
