"""What verify says of one cell, with the numbers that the job names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.project.from_environment import known_secrets
from boxcar.laptop.results import judge
from boxcar.laptop.results.judge import CellFacts, judge_cell, missing
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.run.view import DROPPED
from boxcar.laptop.sites.site import Site
from boxcar.shared.cell import terms
from boxcar.shared.files.receipt import (
    CellVerdict,
    Finding,
    number_without_secrets,
    without_secrets,
)
from boxcar.shared.metrics import measure, result_numbers
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Judged:
    """One cell: what is there of it, what it lacks, and what the receipt says of it."""

    facts: CellFacts
    missing: tuple[Missing, ...]
    verdict: CellVerdict

    @property
    def state(self) -> str:
        if self.verdict.is_dropped:
            return DROPPED
        if not self.missing:
            return "verified"
        return self.facts.lack if self.verdict.because is None else "abandoned"

    @property
    def metrics(self) -> dict[str, float | None]:
        return result_numbers.of_result(self.verdict.metrics, self.verdict.findings)

    @property
    def release(self) -> str | None:
        return self.facts.pulled.manifest.release if self.facts.pulled else None

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.facts.pulled.manifest.warnings if self.facts.pulled else ()

    @property
    def doubt(self) -> str:
        """What marks its result."""
        return self.facts.pulled.manifest.doubt or "" if self.facts.pulled else ""

    @property
    def files(self) -> int:
        return len(self.facts.pulled.manifest.files) if self.facts.pulled else 0

    @property
    def size_bytes(self) -> int:
        """Without what is only carried."""
        files = self.facts.pulled.manifest.files if self.facts.pulled else ()
        return sum(file.size_bytes for file in files)


def judge_cells(
    site: Site,
    facts: CellFacts,
    findings: Sequence[Finding],
    earlier: CellVerdict | None,
    unpickled: Mapping[str, str],
) -> Judged:
    known = known_secrets(site.project.job, os.environ)
    findings = [without_secrets(one, known) for one in judge.vouched_by_box(facts, findings)]
    lacks = missing(
        facts,
        findings,
        artifacts=terms.terms_of_cell(site.plan, facts.cell).artifacts,
        is_tier_there=site.tier.root.exists(),
    )
    verdict = judge_cell(facts, lacks, findings, earlier.because if earlier else None)
    head = f"{facts.cell}/"
    good = {f"{head}{finding.path}" for finding in findings if finding.is_good}
    own = {path.removeprefix(head): at for path, at in unpickled.items() if path in good}
    return Judged(facts, lacks, replace(verdict, unpickled=own))


def measured_numbers(site: Site, cells: Sequence[Judged]) -> list[Judged]:
    """With the numbers that the job names, taken from what lies here and is as it was published."""
    whole = [(cell.facts.cell, cell.facts.pulled) for cell in cells if cell.facts.is_whole]
    left = [
        measure.Left(
            site.results.cell(name),
            site.results.cell(name) / f"{name}.log",
            pulled.manifest.log_begins_at_bytes,
        )
        for name, pulled in whole
        if pulled
    ]
    taken = measure.take_numbers(site.plan.metrics, left)
    found = dict(zip((name for name, _ in whole), taken, strict=True))
    known = known_secrets(site.project.job, os.environ)
    said = {
        cell: tuple(number_without_secrets(number, known) for number in numbers)
        for cell, numbers in found.items()
    }
    return [
        replace(cell, verdict=replace(cell.verdict, metrics=said.get(cell.facts.cell, ())))
        for cell in cells
    ]
