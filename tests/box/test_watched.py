"""What watches a box from afar, with real sshd: `sentinel`, a box that is cut off, gauges that come
with a pull.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hosts import Hosts
from rented import Rented, hurry, rent
from tiny_project import Said

from boxcar.shared import timestamp


@pytest.fixture(autouse=True)
def _runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def memory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "boxcar" / "sentinel.json"


def minutes_pass(tmp_path: Path, minutes: int) -> None:
    """What is remembered of silences is so much older from now on."""
    path = memory(tmp_path)
    document = path.read_text()
    for one in json.loads(document)["runs"].values():
        for silence in (one.get("silences") or {}).values():
            earlier = timestamp.after(silence["since"], -60.0 * minutes)
            document = document.replace(silence["since"], earlier)
    path.write_text(document)


def look(run: Rented) -> Said:
    return run.boxcar("sentinel")


def test_a_box_that_is_cut_off_is_silent_at_the_second_look_and_well_again_when_it_answers(
    hosts: Hosts, tmp_path: Path
) -> None:
    run = rent(
        hosts, tmp_path / "project", {"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]}
    )
    run.hold("a", at=1)
    run.hold("b", at=1)
    run.launch().ended(0)
    assert "silent" not in look(run).err
    hosts.cut("box-b")
    hurry(hosts)
    assert "silent" not in look(run).err, "one look proves nothing"
    minutes_pass(tmp_path, 10)
    second = look(run).ended(1)
    assert "box-b: silent for" in second.err and "box-a: silent" not in second.err
    # It ends nothing: what ran there goes on.
    hosts.heal("box-b")
    assert "well again" in look(run).err
    run.let_go("a")
    run.let_go("b")
    run.wait_for("b", (run.tier / "cells" / "b" / "receipt.json").exists)
    run.wait_for_agents()
    assert "box-b: no agent" in look(run).ended(1).err


def test_the_gauges_of_boxes_without_a_shared_tier_come_with_a_pull(
    hosts: Hosts, tmp_path: Path
) -> None:
    lines = {"q1": ["configs/a.json one", "configs/b.json one"], "q2": ["configs/c.json one"]}
    run = rent(hosts, tmp_path / "project", lines, has_tier=False)
    run.write_config("b", exit_code=7)
    run.hold("a", at=1)
    run.launch().ended(0)
    run.let_go("a")
    run.wait_for_agents()
    run.boxcar("watch", "--every", "1s").ended(1)  # b failed
    run.boxcar("pull").ended(0)
    ring = run.results / "gauges" / "failed" / "b.jsonl"
    readings = [json.loads(line) for line in ring.read_text().splitlines()]
    assert readings and all(one["scratch_free_bytes"] > 0 for one in readings)
    there = run.tier_of("box-a") / "gauges" / "failed" / "b.jsonl"
    assert ring.read_bytes() == there.read_bytes()
