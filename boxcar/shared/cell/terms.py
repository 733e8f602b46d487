"""What holds for one cell: key by key its line's word, its exact name, a pattern, the job."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

from boxcar.shared.cell import rules
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.files.plan import Artifact, Plan, Rule
from boxcar.shared.record import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Terms:
    """`nproc` None: as many ranks as GPUs, else 1; on each of `nodes`. `env` is not filled yet."""

    command: tuple[str, ...]
    launcher: str
    nproc: int | None
    nodes: int
    time_s: int | None
    artifacts: tuple[Artifact, ...]
    resume: str | None
    env: dict[str, str]


def terms_of_cell(plan: Plan, cell: str, own: Own = NOTHING_OWN) -> Terms:
    """`own` is what the cell's line says; artifacts, command and resume need no line.

    One record for all cells of which the same is said.
    """
    found = rules.rules_of_cell(plan.all_rules, cell) if plan.all_rules else ()
    key = (own.nproc, own.time_s, *(rule.cells for rule in found))
    if key not in plan.held_terms:
        plan.held_terms[key] = _of_rules(plan, found, own)
    held: Terms = plan.held_terms[key]
    return held


def _of_rules(plan: Plan, found: Sequence[Rule], own: Own) -> Terms:
    env = dict(plan.job_env)
    for rule in reversed(found):
        env |= rule.env
    return Terms(
        command=_first((rule.command for rule in found), plan.command),
        launcher=_first((rule.launcher for rule in found), plan.launcher),
        nproc=_first((own.nproc, *(rule.nproc for rule in found)), plan.nproc),
        nodes=_first((rule.nodes for rule in found), 1),
        time_s=_first((own.time_s, *(rule.time_s for rule in found)), plan.time_s),
        artifacts=_first((rule.artifacts for rule in found), plan.artifacts),
        resume=_first((rule.resume for rule in found), plan.resume),
        env=env,
    )


def terms_that_differ(plan: Plan, cells: Iterable[str]) -> list[Terms]:
    """What holds for these cells by the rules, each once."""
    if not plan.all_rules:
        return [terms_of_cell(plan, cell) for cell in itertools.islice(cells, 1)]
    found = {id(held): held for held in (terms_of_cell(plan, cell) for cell in cells)}
    return list(found.values())


def other_artifacts(plan: Plan, cells: Iterable[str]) -> dict[str, tuple[Artifact, ...]]:
    """The artifacts of those cells that have others than the job's."""
    found = {cell: terms_of_cell(plan, cell).artifacts for cell in cells if plan.all_rules}
    return {cell: artifacts for cell, artifacts in found.items() if artifacts != plan.artifacts}


def _first(values: Iterable[T | None], otherwise: T) -> T:
    return next((value for value in values if value is not None), otherwise)
