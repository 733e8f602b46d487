from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_project import TinyProject, make_project

from boxcar.laptop.project import cell_faults
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.tryout import passes
from boxcar.shared.errors import InputError

LINES = ["configs/a.json recon 50", "configs/a.json recon 50 lr=1", "configs/a.json recon 50 lr=2"]


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    return make_project(tmp_path / "p", {"q1": LINES}, smoke="--job")


def opened(tiny: TinyProject, cells: dict[str, Any], **job: Any) -> Project:
    tiny.write_job(**({"smoke": "--job", "cells": cells} | job))
    return open_project(tiny.root / "job.yaml", "local")


def added(project: Project) -> dict[str, str]:
    names = [cell.name for cell in project.plan.cells]
    return {name: " ".join(cell_faults.short_run_of_cell(project.job, name).add) for name in names}


def test_the_exact_name_counts_before_a_pattern_and_that_before_the_job(tiny: TinyProject) -> None:
    project = opened(tiny, {"a_*": {"smoke": "--pattern"}, "a_lr2": {"smoke": {"add": "--name"}}})
    assert added(project) == {"a": "--job", "a_lr1": "--pattern", "a_lr2": "--name"}


def test_another_short_run_of_one_cell_costs_no_try_of_the_others(tiny: TinyProject) -> None:
    def keys(cells: dict[str, Any]) -> dict[str, str]:
        project = opened(tiny, cells)
        return {cell.name: str(passes._tried(project, cell)) for cell in project.plan.cells}

    before, after = keys({}), keys({"a_lr1": {"smoke": {"replace": {"{epochs}": "1"}}}})
    assert {name for name in before if before[name] != after[name]} == {"a_lr1"}


def test_a_cell_is_skipped_by_its_own_reason_or_by_the_jobs(tiny: TinyProject) -> None:
    cells = {"a_lr1": {"smoke": {"skip": {"a_lr1": "two GPUs"}}}, "a_lr2": {"smoke": "-s"}}
    job = {"add": "--job", "skip": {"a_lr2": "later"}}
    project = opened(tiny, cells, smoke=job)
    assert passes.skipped(project) == {"a_lr1": "two GPUs", "a_lr2": "later"}


def test_cells_that_nothing_makes_short_are_named(tiny: TinyProject) -> None:
    project = opened(tiny, {"a_lr1": {"smoke": "-s"}}, smoke=None)
    names = [cell.name for cell in project.plan.cells]
    assert "nothing here makes a run of a, a_lr2 short" in cell_faults.cells_without_smoke(
        project.job, names
    )
    assert cell_faults.cells_without_smoke(project.job, ["a_lr1"]) == ""
    assert cell_faults.is_smoke_given(project.job)


def refused(tiny: TinyProject, cells: dict[str, Any], **job: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        opened(tiny, cells, **job)
    return error.value.problems


def test_two_patterns_that_give_a_cell_two_short_runs_are_refused(tiny: TinyProject) -> None:
    patterns = {"a_*": {"smoke": "-s"}, "*2": {"smoke": "-t"}}
    [found] = refused(tiny, patterns)
    assert "cells['*2']: cells such as a_lr2 also match 'a_*', which gives another smoke" in found
    opened(tiny, patterns | {"a_lr2": {"smoke": "-u"}})
    opened(tiny, patterns | {"*2": {"smoke": "-s"}})


def test_what_speaks_of_nothing_is_refused_all_at_once_where_it_stands(tiny: TinyProject) -> None:
    cells = {"a_lr1": {"smoke": {"replace": {"lr=2": "x"}, "skip": {"a": "r"}}}}
    found = refused(tiny, cells, smoke={"add": "-s", "skip": {"b": "r", "c": "r"}})
    assert [text.partition(": ")[2].partition(":")[0] for text in found] == [
        "smoke.skip", "smoke.skip", "cells.a_lr1.smoke.replace", "cells.a_lr1.smoke.skip",
    ]  # fmt: skip
