"""Which short run a cell has: the `smoke:` of its name in `cells:`, of a pattern, or the job's.

Only a laptop tries cells, so the plan that a box reads knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boxcar.laptop.project import short_run
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.short_run import ShortRun
from boxcar.shared.cell import rules
from boxcar.shared.files.plan import Plan
from boxcar.shared.message import some

_MOST_NAMED = 3


def short_run_of_cell(job: Job, cell: str) -> ShortRun:
    return next((short for _, short in _of_rules(job, cell)), job.smoke)


def why_skipped(job: Job, cell: str) -> str | None:
    """The reason to leave the cell out; what the job says of it by name counts also here."""
    return short_run_of_cell(job, cell).why_skipped(cell) or job.smoke.why_skipped(cell)


def is_smoke_given(job: Job) -> bool:
    """Whether any cell's run is made short."""
    return job.smoke.is_given or any(
        rule.smoke is not None and rule.smoke.is_given for rule in job.cells.values()
    )


def cells_without_smoke(job: Job, cells: Iterable[str]) -> str:
    """That `smoke:` says nothing of some of these cells; '' where it speaks of each."""
    without = [cell for cell in cells if not short_run_of_cell(job, cell).is_given]
    if not without:
        return ""
    of = "" if not is_smoke_given(job) else f" of {some(without, _MOST_NAMED)}"
    return f"{job.at('smoke')}: the job does not say what makes a run{of} short"


def faults_of_smoke(job: Job, plan: Plan) -> Iterator[str]:
    """What of it speaks of nothing that is there."""
    yield from short_run.faults(plan, plan.cells, job.smoke, job.at("smoke"))
    yield from short_run.faults(plan, plan.cells, job.rehearse, job.at("rehearse"))
    for name, rule in job.cells.items():
        cells = [cell for cell in plan.cells if rules.rule_fits(name, cell.name)]
        # A pattern may be for lines that are appended later.
        if rule.smoke is not None and cells:
            yield from short_run.faults(plan, cells, rule.smoke, job.at("cells", name, "smoke"))


def quarrels_of_smoke(job: Job, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """A cell that two patterns give different ones, and both; not where its own name gives one."""
    given = [name for name, rule in job.cells.items() if rule.smoke is not None]
    for cell in plan.cells if any(map(rules.is_pattern, given)) else ():
        found = list(_of_rules(job, cell.name))
        if len(found) > 1 and rules.is_pattern(found[0][0]):
            for name, short in found[1:]:
                if short != found[0][1]:
                    yield cell.name, found[0][0], name


def _of_rules(job: Job, cell: str) -> Iterator[tuple[str, ShortRun]]:
    """Those of `cells:` that speak of the cell, the one that counts most first."""
    given = [(name, rule.smoke) for name, rule in job.cells.items() if rule.smoke is not None]
    for name, short in sorted(given, key=lambda one: rules.is_pattern(one[0])):
        if rules.rule_fits(name, cell):
            yield name, short
