from __future__ import annotations

from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_failed, cell_started, cell_verified, make_run

from boxcar.laptop.results.failed_logs import BroughtLog, pull_failed_logs
from boxcar.laptop.verbs.logs import logs

LOG = b"=== attempt 1 ===\nTraceback: out of memory\n"


def pull(run: RunOnDisk, *cells: str) -> list[BroughtLog]:
    view = run.look()
    return pull_failed_logs(run.site, [c for c in view.cells if c.name in cells])


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3"]})
    made.say("queue_1", agent_started(), cell_started("a"), cell_failed("a", is_final=True))
    made.say("queue_1", cell_started("b"), cell_verified("b"))
    for cell in "ab":
        log = made.project.scratch("box-a").log(cell)
        log.parent.mkdir(parents=True)
        log.write_bytes(LOG)
    return made


def test_the_log_of_a_failed_cell_outlives_its_box(run: RunOnDisk, capsys) -> None:
    assert run.look().failed == {"a"}
    (log,) = pull(run, "a")
    assert (
        (path := log.path)
        and path == run.project.results.failed_log("a")
        and path.read_bytes() == LOG
    )
    run.project.scratch("box-a").log("a").unlink()
    assert logs(run.project, cell="a") == 0
    assert "out of memory" in capsys.readouterr().out


def test_only_the_cells_that_are_asked_for_come(run: RunOnDisk) -> None:
    assert [log.cell for log in pull(run, "b")] == ["b"]
    assert not run.project.results.failed_log("a").exists()


def test_a_log_that_is_gone_holds_up_nothing(run: RunOnDisk) -> None:
    run.project.scratch("box-a").log("a").unlink()
    assert pull(run, "a") == []


def test_a_log_that_cannot_be_brought_is_told_with_its_reason(run: RunOnDisk) -> None:
    folder = run.project.results.failed_log("a").parent
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    (log,) = pull(run, "a")
    assert (log.cell, log.path) == ("a", None) and str(folder) in log.problem
