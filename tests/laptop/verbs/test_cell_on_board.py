"""A log that a person has open: it is followed, read back from its end, and its lines keep their
numbers meanwhile.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_failed, cell_started, make_run

from boxcar.laptop.verbs import cell_on_board
from boxcar.laptop.verbs.cell_on_board import CellOnBoard

TOP = -1_000_000


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3"]})
    made.say("queue_1", agent_started(), cell_failed("b"), cell_started("a"))
    return made


def log_of(run: RunOnDisk) -> Path:
    path = run.project.scratch("box-a").log("a")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def opened(run: RunOnDisk, name: str = "a") -> CellOnBoard:
    cell = CellOnBoard(run.site, name)
    cell.see(run.look())
    return cell


def read(cell: CellOnBoard, run: RunOnDisk, top: int | None = None) -> tuple[list[str], int]:
    cell.read(run.look(), top)
    return list(cell.known.log or ()), cell.known.first


def test_it_says_how_the_cell_stands_what_happened_and_what_explain_says(run: RunOnDisk) -> None:
    known = opened(run, "b").known
    assert known.state == "failed" and "OOM out of memory" in known.facts
    assert any("attempt 1 failed" in line for line in known.story)
    assert known.why and any(line.startswith("failed (OOM)") for line in known.why)
    assert known.why[-1].startswith("next: ") and known.log is None


def test_what_is_appended_comes_and_a_line_that_is_not_complete_is_shown(run: RunOnDisk) -> None:
    log_of(run).write_text("one\ntw")
    cell = opened(run)
    assert read(cell, run) == (["one", "tw"], 0)
    with log_of(run).open("a") as file:
        file.write("o\nthree\n")
    assert read(cell, run) == (["one", "two", "three"], 0)


def test_what_stands_above_is_read_where_somebody_is_near_it_and_no_line_changes_its_number(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_on_board, "LOG_LINES", 10)
    log_of(run).write_text("".join(f"line {n}\n" for n in range(1000)) + "not")
    cell = opened(run)
    assert read(cell, run)[0][0] == "line 990" and cell.known.has_more
    with log_of(run).open("a") as file:
        file.write(" complete\nlast\n")
    assert len(read(cell, run, top=None)[0]) == 12, "nobody wants to see more"
    lines, first = read(cell, run, top=5)
    assert (lines[0], first) == ("line 922", -68)
    assert lines[-first] == "line 990"
    for _look in range(2):
        lines, first = read(cell, run, top=TOP)
    assert (lines[0], lines[-first], lines[-1]) == ("line 0", "line 990", "last")
    assert not cell.known.has_more


def test_a_log_that_began_again_is_read_anew(run: RunOnDisk) -> None:
    log_of(run).write_text("one\ntwo\n")
    cell = opened(run)
    read(cell, run)
    log_of(run).write_text("new\n")
    read(cell, run)
    assert read(cell, run) == (["new"], 0)


def test_a_cell_without_a_log_has_an_empty_one_until_it_comes(run: RunOnDisk) -> None:
    cell = opened(run)
    assert read(cell, run) == ([], 0)
    log_of(run).write_text("one\n")
    assert read(cell, run) == (["one"], 0)
