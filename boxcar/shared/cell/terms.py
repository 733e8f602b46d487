"""What holds for one cell: key by key its line's word, its exact name, a pattern, the job."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import combinations
from typing import TypeVar

from boxcar.shared.cell import placeholders
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK, nfc
from boxcar.shared.cell.own_words import NOTHING_OWN, REST, Own
from boxcar.shared.cell.visible_gpus import VISIBLE
from boxcar.shared.files.plan import Artifact, Cell, Plan, Rule
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What `cells:` of job.yaml says of some cells: by a name, or by a pattern with `*` and `?`.
#
# The plan keeps the rules and not what they come to, so that lines which are appended get them too.
# Key by key a line's own word comes first, then the exact name, then a pattern, then the job. `env`
# is merged by variable.


# The keys of a rule, but for `env`.
KEYS = tuple(f.name for f in fields(Rule) if f.name not in ("cells", "env", "extra"))
# Which of them a person writes otherwise.
_IN_JOB = {"nproc": "nproc_per_node", "time_s": "time"}


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def rule_fits(pattern: str, cell: str) -> bool:
    """Whether a name or pattern speaks of the cell; case counts, and `[` is a letter."""
    return bool(_regex(pattern).fullmatch(nfc(cell)))


def rules_of_cell(rules: Iterable[Rule], cell: str) -> list[Rule]:
    """The rules that speak of the cell, the one that counts most first."""
    found = [rule for rule in rules if rule_fits(rule.cells, cell)]
    return sorted(found, key=lambda rule: is_pattern(rule.cells)) if len(found) > 1 else found


def quarrels_of_rules(rules: Iterable[Rule], cell: str) -> Iterator[tuple[str, Rule, Rule]]:
    """Two patterns that give the cell different values for one key: the key, and both.

    Not where its exact name gives that key.
    """
    found = [(_said_by(rule), rule) for rule in rules_of_cell(rules, cell)]
    settled = {key for said, rule in found if not is_pattern(rule.cells) for key in said}
    patterns = [(said, rule) for said, rule in found if is_pattern(rule.cells)]
    for (mine, one), (theirs, other) in combinations(patterns, 2):
        for key in mine.keys() & theirs.keys() - settled:
            if mine[key] != theirs[key]:
                yield key, one, other


def _said_by(rule: Rule) -> dict[str, object]:
    """What it says, by key; a variable is a key of its own."""
    values = {
        _IN_JOB.get(key, key): value for key in KEYS if (value := getattr(rule, key)) is not None
    }
    return values | {f"env.{name}": value for name, value in rule.env.items()}


@functools.lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", nfc(pattern))
    spelled = {"*": ".*", "?": "."}
    return re.compile("".join(spelled.get(part, re.escape(part)) for part in parts), re.DOTALL)


T = TypeVar("T")


@dataclass(frozen=True)
class Terms:
    """`nproc` None: as many ranks as GPUs, else 1; on each of `nodes`. `gpus` None: all of the box.
    `env` is not filled yet.
    """

    command: tuple[str, ...]
    launcher: str
    nproc: int | None
    nodes: int
    time_s: int | None
    artifacts: tuple[Artifact, ...]
    resume: str | None
    env: dict[str, str]
    gpus: int | None = None


def terms_of_cell(plan: Plan, cell: str, own: Own = NOTHING_OWN) -> Terms:
    """`own` is what the cell's line says; artifacts, command and resume need no line.

    One record for all cells of which the same is said.
    """
    found = rules_of_cell(plan.all_rules, cell) if plan.all_rules else ()
    key = (own.nproc, own.gpus, own.time_s, *(rule.cells for rule in found))
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
        gpus=own.gpus or plan.gpus_per_cell,
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


# What of a line does not fit its command: said by `plan`, and by an agent of an appended line.


def misfits_of_line(plan: Plan, line: CellLine | Cell) -> Iterator[str]:
    """Sentences; none where it can be run."""
    found = terms_of_cell(plan, line.name, line.own)
    words = (*found.command, *plan.resume_args)
    if line.cfg == NO_CONFIG and placeholders.takes(words, "cfg"):
        yield _("the command uses {{cfg}}, but the line has - there")
    if "=" in line.task and not placeholders.takes(words, "task"):
        yield _(
            "{task!r} is in the place of the task, which the command does not use: write - before "
            "it to make it an override",
            task=line.task,
        )
    if line.task == NO_TASK and placeholders.takes(words, "task"):
        yield _("the command uses {{task}}, but the line has - there")
    if not line.epochs and plan.epochs is None and placeholders.takes(words, "epochs"):
        yield _(
            "the command uses {{epochs}}, but the line has none; write them as the third field, or "
            "as epochs: in job.yaml"
        )
    if line.own.gpus and not plan.gpus_per_cell:
        yield _(
            "gpus= gives a cell GPUs for itself, which needs gpus_per_cell: in job.yaml; if your "
            "script takes it, put it after {rest}",
            rest=REST,
        )
    if found.gpus and found.env.get(VISIBLE, "") != plan.job_env.get(VISIBLE, ""):
        yield _("gpus_per_cell gives each cell its GPUs: remove {name} from cells:", name=VISIBLE)
    if found.gpus and VISIBLE in line.own.env:
        yield _("gpus_per_cell gives each cell its GPUs: remove env.{name}=", name=VISIBLE)
    if found.gpus and found.nodes > 1:
        yield _("a cell on several nodes has all GPUs of each: leave gpus= and gpus_per_cell out")
    for name in line.own.env:
        if name in plan.secrets:
            yield _("env.{name}= is in the line, but {name} is one of the secrets", name=name)
    yield from _after(words, line)


def misfits_of_rules(plan: Plan, cell: str) -> Iterator[str]:
    """The same of `cells:`, where it says two things of the cell. Sentences."""
    for key, one, other in quarrels_of_rules(plan.rules, cell):
        yield _(
            "cells: gives {cell} two values of {key}, by {one!r} and by {other!r}: name the cell "
            "there, or let only one pattern match it",
            cell=cell,
            key=key,
            one=one.cells,
            other=other.cells,
        )


def _after(words: tuple[str, ...], line: CellLine | Cell) -> Iterator[str]:
    if not placeholders.takes(words, "after"):
        return
    if not line.own.after:
        yield _("the command uses {{after}}, but the line has no after=")
    for cell in placeholders.named_after(words):
        if cell and cell not in line.own.after:
            yield _(
                "the command uses {{after:{cell}}}, but the line's after= does not name it",
                cell=cell,
            )
        if not cell and len(line.own.after) > 1:
            yield _(
                "the command uses {{after}}, but after= names several cells: write {{after:CELL}}"
            )
