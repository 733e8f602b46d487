"""What brings and proves results costs the same for each further cell: counted in calls, those of
all threads, whatever the load.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results.hashed_before import HashedBefore
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs import down, verify
from boxcar.laptop.verbs.pull_cells import pull_cells
from boxcar.laptop.verbs.pull_journals import pull_journals
from boxcar.laptop.verbs.report import asked_of
from boxcar.laptop.verbs.verify import cell_facts, judge_cells, measured_numbers
from boxcar.laptop.view.report import gather
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import timestamp
from boxcar.shared.process.load_child import Loaded

FEW, MORE, MANY = 10, 20, 80
# One call more for each other cell would be a twentieth.
MOST = 1.02


def _pull_again(run: FinishedRun) -> Callable[[], object]:
    site = run.site

    def act() -> None:
        view = look_at_run(site, timestamp.utc_now())
        pull_cells(site, view, view.roster.cells, 0, Progress(""))
        pull_journals(site)

    return act


def _verify(run: FinishedRun) -> Callable[[], object]:
    """But for the children that load."""
    site = run.site

    def act() -> None:
        facts = cell_facts(site, look_at_run(site, timestamp.utc_now()))
        cells = measured_numbers(site, [judge_cells(site, one, [], None, {}) for one in facts])
        verify._write(site, cells, Loaded({}, "", ()))

    return act


def _report(run: FinishedRun) -> Callable[[], object]:
    _verify(run)()
    return lambda: gather.report_of(run.project, asked_of(run.project, (), Asked(())))


def _gate(run: FinishedRun) -> Callable[[], object]:
    _verify(run)()
    return lambda: down._look(run.site, HashedBefore(from_disk=True), None)


def _calls(act: Callable[[], object]) -> int:
    """The fewest of three times: what other tests left is finalized meanwhile, and fills caches."""
    act()
    return min(_counted(act) for _ in range(3))


def _counted(act: Callable[[], object]) -> int:
    counted = itertools.count()

    def hook(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(counted)

    gc.collect()
    gc.disable()
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        gc.enable()
    return next(counted)


def _run(root: Path, count: int) -> FinishedRun:
    run: FinishedRun = make_run(root, tuple(f"c{at:03d}" for at in range(count)))
    run.copy_here()
    return run


@pytest.mark.parametrize("prepare", [_pull_again, _verify, _report, _gate])
def test_a_verb_grows_with_the_cells_and_no_faster(
    tmp_path: Path, prepare: Callable[[FinishedRun], Callable[[], object]]
) -> None:
    sizes = (FEW, MORE, MANY)
    few, more, many = (_calls(prepare(_run(tmp_path / str(n), n))) for n in sizes)
    of_few, of_many = (more - few) / (MORE - FEW), (many - more) / (MANY - MORE)
    assert of_many < of_few * MOST, (of_few, of_many)
