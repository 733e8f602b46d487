from __future__ import annotations

from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_failed, cell_verified, make_run, queue_done

from boxcar.laptop.run import view
from boxcar.laptop.run.view import Blocked

LINES = {
    "queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3 after=a"],
    "queue_2": ["configs/c.yaml seg 3 after=b", "configs/d.yaml seg 3"],
}


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path, LINES)


def found(run: RunOnDisk) -> dict[str, Blocked]:
    return view.blocked_of_run(run.look())


def test_nothing_is_blocked_while_what_it_waits_for_may_still_come(run: RunOnDisk) -> None:
    assert found(run) == {}
    run.say("queue_1", agent_started(), cell_verified("a"), cell_failed("b"))
    assert found(run) == {"c": Blocked("b", "failed")}


def test_a_failed_cell_blocks_all_that_come_after_it_and_no_other(run: RunOnDisk) -> None:
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    assert found(run) == {"b": Blocked("a", "failed"), "c": Blocked("a", "failed")}


def test_a_dropped_cell_blocks_too(run: RunOnDisk) -> None:
    dropped = "# configs/a.yaml recon 3\nconfigs/b.yaml recon 3 after=a\n"
    run.site.tier.queue("queue_1").write_text(dropped)
    assert found(run)["b"] == Blocked("a", "is dropped")
