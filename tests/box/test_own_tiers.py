"""Each box has a durable folder of its own: what one holds is nowhere else until it is pulled."""

from __future__ import annotations

from pathlib import Path

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
    assert "c: is published and was not pulled: boxcar pull" in refused.err
    run.boxcar("watch", "--every", "1s").ended(0)
    for cell, box in (("a", "box-a"), ("b", "box-a"), ("c", "box-b")):
        there = run.tier_of(box) / "cells" / cell / "manifest.json"
        assert (here / cell / "manifest.json").read_bytes() == there.read_bytes()
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    run.boxcar("down", typed="tiny").ended(0)
    assert not any(run.credentials(box).exists() for box in ("box-a", "box-b"))
