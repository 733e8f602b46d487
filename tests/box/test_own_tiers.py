"""Each box has a durable folder of its own: what one holds is nowhere else until it is pulled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hosts import Hosts
from rented import rent


def test_without_a_shared_tier_results_come_as_cells_end_and_the_gate_counts_what_came(
    hosts: Hosts, tmp_path: Path
) -> None:
    lines = {"q1": ["configs/a.json one", "configs/b.json one"], "q2": ["configs/c.json one"]}
    run = rent(hosts, tmp_path / "project", lines, has_tier=False)
    run.hold("b", at=1)
    run.hold("c", at=1)
    run.launch().ended(0)
    watching = run.start("watch", "--every", "1s")
    here = run.results / "cells"
    run.wait_for("a, while b runs", (here / "a" / "manifest.json").exists)
    assert not (here / "b").exists()
    assert run.boxcar("down", "--approve", "0" * 64).ended(1)
    run.let_go("b")
    run.wait_for("b, while c runs", (here / "b" / "manifest.json").exists)

    # What a box holds alone is not counted, and a box that takes it along is missed by name.
    watching.kill()
    watching.communicate()
    run.let_go("c")
    run.wait_for("c", (run.tier_of("box-b") / "cells" / "c" / "receipt.json").exists)
    refused = run.boxcar("verify").ended(1)
    assert "c is published but not pulled: boxcar pull" in refused.err
    run.boxcar("watch", "--every", "1s").ended(0)
    for cell, box in (("a", "box-a"), ("b", "box-a"), ("c", "box-b")):
        there = run.tier_of(box) / "cells" / cell / "manifest.json"
        assert (here / cell / "manifest.json").read_bytes() == there.read_bytes()
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    run.boxcar("down", typed="tiny").ended(75)
    assert not any(run.credentials(box).exists() for box in ("box-a", "box-b"))


@pytest.mark.faults
def test_what_was_pulled_and_proven_is_not_trained_again_on_a_box_that_was_rented_anew(
    hosts: Hosts, tmp_path: Path
) -> None:
    queues = {"q1": ["configs/a.json one", "configs/b.json one", "configs/c.json one after=a"]}
    words = "train.py --config {cfg} --task {after} --epochs {epochs} --out {out}"
    run = rent(hosts, tmp_path / "project", queues, has_tier=False, cells={"c": {"command": words}})
    run.hold("b", at=1)
    run.launch().ended(0)
    here = run.results
    with run.start("watch", "--every", "1s") as watching:
        run.wait_for("a's result", (here / "cells" / "a" / "receipt.json").exists)
        run.wait_for("b's checkpoint", (here / "resume" / "b.json").exists)
        watching.kill()
        watching.communicate()

    wipe(hosts, "box-a")
    launched = run.launch().ended(0)
    assert "q1: box-a does not train these again" in launched.err and "b: resumes" in launched.err
    status = run.boxcar("status").err
    assert "a: verified, reused" in status
    run.let_go("b")
    run.watch()
    # The one that comes after it got its files; it was not trained for that.
    tier = run.tier_of("box-a")
    assert (tier / "cells" / "a" / "model.json").read_bytes() == (
        here / "cells" / "a" / "model.json"
    ).read_bytes()
    assert not (run.box("box-a") / "cells" / "a").exists()
    assert json.loads((here / "cells" / "c" / "metrics.json").read_bytes())["task"].endswith("/a")
    history = (run.box("box-a") / "cells" / "b" / "out" / "history.txt").read_text()
    assert history.startswith("start 1\n"), "b began anew"
    run.boxcar("pull").ended(0)

    wipe(hosts, "box-a")
    assert "does not train these again" in run.launch().ended(0).err
    run.wait_for_agents()
    assert not (run.box("box-a") / "cells").exists()
    status = run.boxcar("status", "--json").ended(0).document
    assert {cell["state"] for cell in status["cells"]} == {"verified"}
    run.boxcar("pull").ended(0)
    run.boxcar("repair").ended(0)
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    run.boxcar("down", typed="tiny").ended(75)


def wipe(hosts: Hosts, box: str) -> None:
    """Another one was rented in its place: the same address, and an empty disk."""
    hosts.halt(box)
    hosts.boot(box)
    hosts.run(box, ["sh", "-c", f"rm -rf {Hosts.data_dir}/* {hosts.home(box)}/.boxcar"])
