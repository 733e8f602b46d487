"""What the files of a project come to costs as much for each further cell, and little: counted in
calls, whatever the load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.project import cell_faults, queue_files
from boxcar.laptop.project.project import Project, open_project
from boxcar.shared.cell import terms

JOB = """\
name: run-1
code: code
command: train.py {cfg} --epochs {epochs} {more} {out}
epochs: 3
queues: {queue.txt: box-a}
artifacts: [best.pth]
cells: {'c*': {time: 1h}, '*0': {nproc_per_node: 2}}
"""
FEW, MANY = 50, 400
# For each line, with two patterns; it was 860 when each part asked anew what holds for the cell.
MOST_CALLS = 300


def project_of(root: Path, count: int) -> Callable[[], Project]:
    """One config, and overrides in each line, as a grid writes them."""
    (root / "code").mkdir(parents=True)
    for name in ("train.py", "a.json"):
        (root / "code" / name).touch()
    lines = (f"a.json recon name=c{at:03d} lr={at} seed={at % 3}\n" for at in range(count))
    (root / "queue.txt").write_text("".join(lines))
    (root / "job.yaml").write_text(JOB)
    return lambda: open_project(root / "job.yaml", "local")


def calls(act: Callable[[], object]) -> int:
    count = 0

    def hook(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    act()  # what is imported the first time
    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def test_a_further_cell_costs_the_same_in_a_run_of_any_size(tmp_path: Path) -> None:
    sizes = (FEW, 2 * FEW, MANY)
    one, two, many = (calls(project_of(tmp_path / str(size), size)) for size in sizes)
    each = (two - one) / FEW
    assert (many - two) / (MANY - 2 * FEW) < each * 1.1
    assert each < MOST_CALLS


def test_what_holds_for_cells_is_worked_out_once_for_all_of_which_the_same_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, work_out = [], terms._of_rules
    monkeypatch.setattr(terms, "_of_rules", lambda *of: made.append(of) or work_out(*of))
    project_of(tmp_path / "few", FEW)()
    of_few = len(made)
    project = project_of(tmp_path / "many", MANY)()
    assert len(made) == 2 * of_few < FEW
    held = [terms.terms_of_cell(project.plan, name) for name in ("c000", "c001")]
    assert [(one.nproc, one.time_s) for one in held] == [(2, 3600), (None, 3600)]


def test_a_config_is_looked_for_once_however_many_lines_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, find = [], queue_files.ConfigFiles._stored
    monkeypatch.setattr(
        queue_files.ConfigFiles, "_stored", lambda self, cfg: looked.append(cfg) or find(self, cfg)
    )
    project_of(tmp_path, MANY)()
    assert looked == ["a.json"]


def test_what_is_worth_a_look_is_worked_out_for_plan_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        cell_faults, "notes_on_cells", lambda *of: asked.append(of) or ["look at that"]
    )
    project = project_of(tmp_path, FEW)()
    assert not asked
    assert project.take_notes() == project.take_notes() == ("look at that",)
    assert len(asked) == 1
