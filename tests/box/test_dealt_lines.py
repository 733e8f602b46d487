"""Boxes with a durable folder of their own that work through one queue file."""

from __future__ import annotations

from pathlib import Path

from hosts import Hosts
from rented import rent


def test_a_box_joins_a_queue_file_and_gets_cells_that_wait_on_a_tier_of_its_own(
    hosts: Hosts, tmp_path: Path
) -> None:
    names = [f"c{at}" for at in range(8)]
    lines = [f"configs/{name}.json one" for name in names]
    run = rent(hosts, tmp_path / "project", {"all": lines}, has_tier=False)
    run.write_job(queues={"queues/all.txt": ["box-a"]})
    run.hold("c0", at=1)  # the others wait behind it
    assert "launch deals its cells out to all-box-a" in run.boxcar("plan").ended(0).err
    assert not (run.root / "queues" / "all-box-a.txt").exists()
    run.launch().ended(0)
    run.write_job(queues={"queues/all.txt": ["box-a", "box-b"]})
    assert "waits on box-b now, which has less to do" in run.launch().ended(0).err
    given = (run.root / "queues" / "all-box-b.txt").read_text()
    own = [name for name in names if f"configs/{name}.json" in given]
    assert own == ["c5", "c6", "c7"]

    def has_ended(cell: str) -> bool:
        return (run.tier_of("box-b") / "cells" / cell / "receipt.json").exists()

    run.wait_for("what box-b was given", lambda: all(map(has_ended, own)))
    run.boxcar("status").ended(0)
    run.let_go("c0")
    run.watch()
    run.boxcar("pull").ended(0)
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    for name in names:
        there = [b for b in ("box-a", "box-b") if (run.tier_of(b) / "cells" / name).exists()]
        assert there == (["box-b"] if name in own else ["box-a"]), name
