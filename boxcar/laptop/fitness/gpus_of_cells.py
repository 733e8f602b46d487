"""How the GPUs of a run's boxes fit its cells: each has some for itself, and cells are compared.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from boxcar.laptop.fitness.rules import ALL, Row, Told
from boxcar.laptop.project.cells_at_once import cells_at_once, say_unused
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import replace
from boxcar.shared.sentence import _


def judge_gpus_of_cells(told_by_box: Mapping[str, Told], plan: Plan) -> Iterator[Row]:
    """A box whose GPUs do not fit the cells, and boxes that have other GPUs than the rest."""
    found = {box: _names(told) for box, told in told_by_box.items() if told.facts}
    if plan.gpus_per_cell:
        for box, names in found.items():
            facts = told_by_box[box].facts
            gpus = facts.gpus_for_cells if facts else 0
            is_divided = gpus > len(names)
            row = _side_by_side(box, gpus, plan, plan.gpus_per_cell, is_divided=is_divided)
            yield row if row.verdict == "refuse" else _with_lines(row, gpus, plan)
    elif plan.slots and plan.slots > 1:
        yield from (_shared(box, plan.slots) for box, names in found.items() if names)
    different = {names for names in found.values() if names}
    if len(different) > 1:
        said = "; ".join(f"{box}: {_listed(names)}" for box, names in found.items() if names)
        why = _(
            "cells that other GPUs trained cannot be compared in time, and hardly in the last "
            "digits: keep what you compare on boxes of one kind"
        )
        yield Row(ALL, "GPUs alike", "warn", said, why)


def _side_by_side(box: str, gpus: int, plan: Plan, each: int, *, is_divided: bool) -> Row:
    beside = cells_at_once(plan, gpus)
    if not beside:
        why = _("gpus_per_cell is {n}, and this box has {all}", n=each, all=gpus)
        return Row(box, "cells at once", "refuse", "0", why)
    if is_divided and each > 1:
        why = _("its cards are divided (MIG), and CUDA shows a process only one slice of them")
        return Row(box, "cells at once", "warn", str(beside), why)
    unused = say_unused(plan, gpus)
    return Row(box, "cells at once", "warn" if unused else "ok", str(beside), unused)


def _shared(box: str, slots: int) -> Row:
    why = _("they share each GPU and its memory: see by nvidia-smi that it holds all of them")
    return Row(box, "cells at once", "warn", str(slots), why)


def _with_lines(row: Row, gpus: int, plan: Plan) -> Row:
    """Refused where no line of the box's file can run on it: it would bill and claim nothing."""
    boxes = plan.boxes_of_files
    wanted = [
        terms.terms_of_cell(plan, cell.name, cell.own).gpus or 0
        for cell in plan.cells
        if row.box in boxes[cell.queue]
    ]
    if min(wanted, default=0) <= gpus:
        return row
    why = _("each of its cells needs {n} GPUs or more, and it has {all}", n=min(wanted), all=gpus)
    return replace(row, verdict="refuse", found="0", reason=why)


def _names(told: Told) -> tuple[str, ...]:
    rows = told.facts.gpus if told.facts else ()
    return tuple(sorted(row.name for row in rows if row.name is not None))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
