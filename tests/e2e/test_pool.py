"""Several boxes on one queue file: each cell is published once, whoever dies, comes and goes."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest
from proof import (
    assert_as_manifest,
    assert_nothing_runs,
    assert_nothing_torn,
    assert_published_once,
    assert_pulled,
)
from storm import assert_went_on, stormy_pool
from tiny_project import MakeProject, TinyProject

BOXES = ["box-a", "box-b", "box-c"]
HELD = ["c00", "c01", "c02"]


def pool(make: MakeProject, cells: int, boxes: list[str]) -> TinyProject:
    """Of short cells; the first ones, as many as there are boxes, wait until they are let go."""
    names = [f"c{number:02d}" for number in range(cells)]
    lines = [f"configs/{name}.json one 2" for name in names]
    run = make({"all": lines})
    run.write_job(queues={"queues/all.txt": boxes})
    for name in HELD[: len(boxes)]:
        run.hold(name, at=1)
    return run


def owner(run: TinyProject, cell: str) -> str:
    """The box of the member that has the cell; '' while nobody has."""
    path = run.tier / "claims" / f"{cell}.json"
    if not path.exists():
        return ""
    claim = json.loads(path.read_bytes())
    assert claim["queue"] == f"all@{claim['box']}"
    return str(claim["box"])


def wait_until_held(run: TinyProject, boxes: list[str]) -> dict[str, str]:
    """By held cell its box, once each has one of them and has made its first step."""
    cells = HELD[: len(boxes)]
    run.wait_for("each box at a cell", lambda: all(owner(run, cell) for cell in cells))
    found = {cell: owner(run, cell) for cell in cells}
    assert tuple(found.values()) in permutations(boxes)
    for cell, box in found.items():
        run.wait_for_step(box, cell, 1)
    return found


def kill_agent(run: TinyProject, box: str) -> None:
    beat = json.loads((run.tier / "heartbeat" / f"all@{box}.json").read_bytes())
    os.kill(beat["pid"], signal.SIGKILL)


def kill_attempt(run: TinyProject, box: str, cell: str) -> None:
    folder = run.box(box) / "cells" / cell
    run.wait_for("what it has started", (folder / "processes.json").exists)
    started = json.loads((folder / "processes.json").read_bytes())["processes"]
    for process in [json.loads((folder / "running.json").read_bytes()), *started]:
        with suppress(ProcessLookupError):
            os.kill(process["pid"], signal.SIGKILL)


def verified(run: TinyProject) -> set[str]:
    return {e["data"]["cell"] for e in run.all_events() if e["type"] == "cell.verified"}


def rows(run: TinyProject) -> dict[str, Any]:
    return {row["cell"]: row for row in run.boxcar("status", "--json").ended(0).document["cells"]}


def test_a_killed_agent_finds_its_cell_and_a_box_that_is_gone_gives_its_cell_back(project):
    run = pool(project, 30, BOXES)
    cells = [f"c{number:02d}" for number in range(30)]
    run.boxcar("launch").ended(0)
    boxes = wait_until_held(run, BOXES)
    assert rows(run)["c29"]["queue"] == "all"
    kill_agent(run, boxes["c00"])
    kill_agent(run, boxes["c01"])
    kill_attempt(run, boxes["c01"], "c01")
    run.boxcar("launch", "--box", boxes["c00"]).ended(0)  # which finds c00 as it was
    for cell in HELD:
        run.let_go(cell)
    run.wait_for("all but one", lambda: len(verified(run)) == 29)
    run.wait_for_event(f"all@{boxes['c02']}", "agent.stopped")
    assert owner(run, "c01") == boxes["c01"], "nobody has said that its box is gone"
    gone = ("launch", "--gone", boxes["c01"], "--because")
    assert "needs a reason" in run.boxcar(*gone[:-1]).ended(2).err
    said = run.boxcar(*gone, "its disk died").ended(0)
    assert f"all@{boxes['c01']}: 1 unfinished cell goes to the boxes of its pool" in said.err
    run.boxcar("watch").ended(0)
    assert_published_once(run, cells)
    assert_nothing_torn(run)
    made = {cell: assert_as_manifest(run.tier / "cells" / cell)["box"] for cell in cells}
    assert made["c00"] == boxes["c00"] and made["c01"] != boxes["c01"]
    starts = run.out(boxes["c00"], "c00").joinpath("history.txt").read_text().count("start")
    assert starts == 1
    assert rows(run)["c01"]["box"] == made["c01"]
    assert not run.warnings(f"all@{boxes['c00']}", "claimed_elsewhere")
    run.boxcar("pull").ended(0)
    assert_pulled(run, cells)
    digest = run.boxcar("verify", "--json").ended(0).document["digest"]
    run.boxcar("down", "--approve", digest).ended(0)
    assert_nothing_runs(run)


def test_a_box_that_joins_takes_part_and_one_that_is_taken_out_is_drained(project):
    run = pool(project, 6, ["box-a", "box-b"])
    run.boxcar("launch").ended(0)
    boxes = wait_until_held(run, ["box-a", "box-b"])
    run.write_job(queues={"queues/all.txt": ["box-a", "box-c"]})
    run.append("all", "configs/late.json one 2")
    run.write_config("late", x=5)
    said = run.boxcar("launch").ended(0)
    assert "all@box-b: box-b is no longer in the job" in said.err
    run.wait_for("what is free", lambda: len(verified(run)) == 5)  # by box-c alone
    assert {owner(run, cell) for cell in ("c02", "c03", "c04", "c05", "late")} == {"box-c"}
    run.append("all", "configs/later.json one 2")
    run.write_config("later", x=6)
    run.wait_for_event("all@box-c", "agent.stopped")
    run.boxcar("push").ended(0)
    for cell in HELD:
        run.let_go(cell)
    run.wait_for_event("all@box-a", "agent.stopped")
    run.wait_for_event("all@box-b", "agent.stopped")
    # The agent that began with the first job takes what the later ones brought.
    assert owner(run, "later") == "box-a"
    assert [run.events("all@box-b")[-1]["data"]["by"]] == ["drain"]
    assert_published_once(run, ["c00", "c01", "c02", "c03", "c04", "c05", "late", "later"])
    assert set(boxes.values()) == {"box-a", "box-b"}


def test_a_box_where_an_agent_runs_is_not_gone_and_one_in_no_pool_is_moved_by_hand(project):
    run = pool(project, 2, ["box-a", "box-b"])
    run.boxcar("launch").ended(0)
    wait_until_held(run, ["box-a", "box-b"])
    said = run.boxcar("launch", "--gone", "box-b", "--because", "so").ended(2)
    assert "--gone box-b: it is a folder on this machine and can be read" in said.err
    for cell in HELD:
        run.let_go(cell)
    run.wait_for_agents()


def test_a_queue_that_had_its_file_alone_becomes_a_pool_and_what_it_began_goes_on(project):
    run = pool(project, 2, ["box-a"])
    run.write_job(queues={"queues/all.txt": "box-a"})
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "c00", 1)
    run.write_job(queues={"queues/all.txt": ["box-a", "box-b"]})
    said = run.boxcar("launch").ended(2)
    assert "all is at work on box-a, alone with its file: boxcar drain --box box-a" in said.err
    run.boxcar("stop").ended(0)
    run.wait_for_event("all", "agent.stopped")
    run.let_go("c00")
    said = run.boxcar("launch").ended(0)
    assert "all: 1 unfinished cell goes to the boxes of its pool: c00" in said.err
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["c00", "c01"])


@pytest.mark.faults
def test_every_cell_of_a_pool_is_verified_once_whatever_is_killed(project):
    _storm(project, seed=20261128, cells=8, kills=8)


@pytest.mark.faults
def test_a_long_storm_on_a_pool(project):
    _storm(project, seed=20261129, cells=30, kills=40)


FOUR_GPUS: dict[str, Any] = {"gpus_per_cell": 1, "env": {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}}


def test_every_cell_is_verified_once_where_each_box_of_the_pool_has_four_slots(project):
    _storm(project, seed=20261130, cells=12, kills=8, **FOUR_GPUS)


@pytest.mark.faults
def test_a_long_storm_on_a_pool_whose_boxes_have_four_slots(project):
    _storm(project, seed=20261201, cells=40, kills=40, **FOUR_GPUS)


def _storm(make: MakeProject, seed: int, cells: int, kills: int, **job: Any) -> None:
    storm = stormy_pool(make, seed, cells, **job)
    storm.run_queues(kills)
    assert_published_once(storm.project, storm.cells)
    assert_nothing_torn(storm.project)
    assert_went_on(storm)
    print(storm)
    assert {"script", "wrapper", "agent"} <= set(storm.hits), str(storm)
