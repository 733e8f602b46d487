"""What of a line does not fit its command: said by `plan`, and by an agent of an appended line."""

from __future__ import annotations

from collections.abc import Iterator

from boxcar.shared.cell import placeholders, rules, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK
from boxcar.shared.files.plan import Cell, Plan


def misfits_of_line(plan: Plan, line: CellLine | Cell) -> Iterator[str]:
    """Sentences; none where it can be run."""
    found = terms.terms_of_cell(plan, line.name, line.own)
    words = (*found.command, *plan.resume_args)
    if line.cfg == NO_CONFIG and placeholders.takes(words, "cfg"):
        yield "the command takes {cfg}, but the line has - in its place"
    if "=" in line.task and not placeholders.takes(words, "task"):
        yield (
            f"{line.task!r} stands where the task does, which the command does not take: write - "
            "before it, and it is an override"
        )
    if line.task == NO_TASK and placeholders.takes(words, "task"):
        yield "the command takes {task}, but the line has - in its place"
    if not line.epochs and plan.epochs is None and placeholders.takes(words, "epochs"):
        yield (
            "the command takes {epochs}, but the line gives none; write them as the third field, "
            "or epochs: in job.yaml"
        )
    for name in line.own.env:
        if name in plan.secrets:
            yield f"env.{name}= is in the line, but {name} is one of the secrets"
    yield from _after(words, line)


def misfits_of_rules(plan: Plan, cell: str) -> Iterator[str]:
    """The same of `cells:`, where it says two things of the cell. Sentences."""
    for key, one, other in rules.quarrels_of_rules(plan.rules, cell):
        yield (
            f"cells: gives {cell} one {key} by {one.cells!r} and another by {other.cells!r}: name "
            "the cell there, or make the two patterns apart"
        )


def _after(words: tuple[str, ...], line: CellLine | Cell) -> Iterator[str]:
    if not placeholders.takes(words, "after"):
        return
    if not line.own.after:
        yield "the command takes {after}, but the line has no after="
    for cell in placeholders.named_after(words):
        if cell and cell not in line.own.after:
            yield f"the command takes {{after:{cell}}}, but the line's after= does not name it"
        if not cell and len(line.own.after) > 1:
            yield "the command takes {after}, but after= names several: write {after:CELL}"
