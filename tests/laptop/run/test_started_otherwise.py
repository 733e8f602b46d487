from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_on_disk import agent_started, make_run

from boxcar.shared.cell import cell_line

WAS = {"cfg": "configs/a.yaml", "task": "recon", "epochs": 3, "nproc": 1}


@pytest.mark.parametrize(
    "changes", [{"epochs": 2}, {"task": "recoo"}, {"cfg": "configs/sub/a.yaml"}]
)
def test_a_cell_that_was_started_otherwise_than_the_plan_says_is_a_doubt(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), ("cell.started", {"cell": "a", "attempt": 1} | WAS))
    assert run.look().roster.doubts == ()
    run.say("queue_1", ("cell.started", {"cell": "a", "attempt": 2} | WAS | changes))
    (doubt,) = run.look().roster.doubts
    assert (
        "a was started as" in doubt.what
        and "its line is now 'configs/a.yaml recon 3'" in doubt.what
    )


def test_a_cell_that_no_plan_has_is_compared_with_its_line(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with run.site.tier.queue("queue_1").open("a") as queue:
        queue.write("configs/new.yaml recon 3\n")
    started = {"cell": "new", "attempt": 1} | WAS | {"cfg": "configs/new.yaml"}
    run.say("queue_1", agent_started(), ("cell.started", started))
    assert run.look().roster.doubts == ()
    run.say("queue_1", ("cell.started", started | {"epochs": 7}))
    (doubt,) = run.look().roster.doubts
    assert "new was started as 'configs/new.yaml recon 7'" in doubt.what


@pytest.mark.parametrize(
    ("line", "is_doubt"),
    [
        ("configs/a.yaml recon 3", False),
        ("configs/a.yaml recon", False),  # the job's default may have been another then
        ("configs/a.yaml recon 4", True),
        ("configs/a.yaml recon 3 name=a lr=2", True),
        ("configs/a.yaml recon 3 env.SEED=1", True),
        ("configs/a.yaml recon 3 nproc=2", False),
        ("# configs/a.yaml recon 4", False),
    ],
)
def test_a_line_that_asks_for_something_else_by_now_keeps_the_gate_shut(
    tmp_path: Path, line: str, is_doubt: bool
) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), ("cell.started", {"cell": "a", "attempt": 1} | WAS))
    run.site.tier.queue("queue_1").write_text(f"{line}\n")
    found = [doubt.what for doubt in run.look().roster.doubts]
    assert bool(found) == is_doubt, found
    assert all("a was started as 'configs/a.yaml recon 3', but" in text for text in found)


def test_a_line_that_is_told_can_be_typed_as_it_is(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    words = {"overrides": ["--tag", "two words", "-x"], "own": {"env": {"SEED": "1 2"}, "nproc": 2}}
    run.say("queue_1", ("cell.started", {"cell": "a", "attempt": 1} | WAS | words))
    run.site.tier.queue("queue_1").write_text("configs/a.yaml recon 3 name=a -- x\n")
    (doubt,) = run.look().roster.doubts
    ran = "configs/a.yaml recon 3 name=a nproc=2 'env.SEED=1 2' --tag 'two words' -x"
    assert f'a was started as "{ran}", but ' in doubt.what
    parsed = cell_line.parse(ran.encode(), 0, 1)
    assert parsed.overrides == ("--tag", "two words", "-x")
    other = doubt.what.partition(" but ")[2]
    assert other == "its line is now 'configs/a.yaml recon 3'"


def test_the_order_of_variables_is_no_difference(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    own = {"own": {"env": {"A": "1", "B": "2"}}}
    run.say("queue_1", ("cell.started", {"cell": "new", "attempt": 1} | WAS | own))
    line = "configs/a.yaml recon 3 name=new env.B=2 env.A=1\n"
    run.site.tier.queue("queue_1").write_text(line)
    assert run.look().roster.doubts == ()


def test_each_cell_that_was_started_otherwise_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for cell in ("a", "b"):
        about = WAS | {"cfg": f"configs/{cell}.yaml"}
        run.say("queue_1", ("cell.started", {"cell": cell, "attempt": 1} | about))
    run.say("queue_1", ("cell.started", {"cell": "a", "attempt": 2} | WAS | {"task": "recoo"}))
    run.site.tier.queue("queue_1").write_text("configs/b.yaml recon 4\n")
    assert [doubt.what.split()[0] for doubt in run.look().roster.doubts] == ["a", "b"]
