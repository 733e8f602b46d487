"""How many cells run side by side on a box, as far as the job says it, and what stays unused.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.resources import Resources
from boxcar.shared.cell import terms, visible_gpus
from boxcar.shared.cell.visible_gpus import VISIBLE
from boxcar.shared.errors import some
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import Sentence, _

_MOST_NAMED = 4


def cells_at_once(plan: Plan, gpus: int) -> int:
    """On a box with so many GPUs; 0 where no cell has enough of them."""
    if not plan.gpus_per_cell:
        return plan.slots or 1
    fit = gpus_given_out(plan, gpus) // plan.gpus_per_cell
    return min(fit, plan.slots or fit)


def gpus_given_out(plan: Plan, gpus: int) -> int:
    """Those of the box, or those of them that the job's `env` names."""
    named = named_gpus(plan)
    return gpus if named is None else min(gpus, len(named))


def named_gpus(plan: Plan) -> visible_gpus.Devices | None:
    return visible_gpus.of_env({**plan.env, **plan.job_env})


def unused_gpus(plan: Plan, gpus: int) -> int:
    """Of those that are given out, how many no cell ever gets."""
    if not plan.gpus_per_cell:
        return 0
    return gpus_given_out(plan, gpus) - cells_at_once(plan, gpus) * plan.gpus_per_cell


def say_unused(plan: Plan, gpus: int) -> Sentence | str:
    """'' where each has a cell."""
    if not (unused := unused_gpus(plan, gpus)):
        return ""
    all_of = gpus_given_out(plan, gpus)
    return _("{n} {n:GPU|GPUs} of {all} {n:is|are} never used", n=unused, all=all_of)


def say_cells_at_once(plan: Plan, resources: Resources) -> Iterator[Sentence]:
    """What `plan` says of a job whose cells run side by side; nothing of any other."""
    each, wish = plan.gpus_per_cell, resources.gpu
    if not each:
        if plan.slots and plan.slots > 1:
            yield _("{n} on each box, which share its GPUs and their memory", n=plan.slots)
        return
    known = wish.count.least if wish and wish.count else None
    if (named := named_gpus(plan)) is not None:
        about = {"name": VISIBLE, "gpus": ",".join(named)}
        yield _("they share out the GPUs that env: {name} names ({gpus}), and no others", **about)
        known = len(named) if known is None else known
    if known is None:
        yield _("as many as a box has GPUs for, {n} each; audit says how many", n=each)
        return
    cells, unused = cells_at_once(plan, known), say_unused(plan, known)
    said = _("{n} on a box with {gpus} {gpus:GPU|GPUs}", n=cells, gpus=known)
    yield _("{first}; {second}", first=said, second=unused) if unused else said
    yield from _say_too_large(plan, gpus_given_out(plan, known))


def faults_of_gpus(job: Job, plan: Plan) -> Iterator[str]:
    """A job none of whose cells fits a box as the job itself describes it."""
    wish, named = job.resources.gpu, named_gpus(plan)
    wanted = [terms.terms_of_cell(plan, cell.name, cell.own).gpus or 0 for cell in plan.cells]
    each = min(wanted, default=plan.gpus_per_cell or 0)
    at = job.at("gpus_per_cell")
    if not plan.gpus_per_cell:
        return
    if named is not None and each > len(named):
        about = {"at": at, "n": each, "name": VISIBLE, "gpus": ",".join(named) or "''"}
        yield _("{at}: each cell asks for {n} {n:GPU|GPUs}, and env: {name} names {gpus}", **about)
    elif wish and wish.count and wish.count.most is not None and each > wish.count.most:
        yield _(
            "{at}: each cell asks for {n} {n:GPU|GPUs}, and by resources: gpu: count a box has "
            "{all}",
            at=at,
            n=each,
            all=wish.count.text,
        )


def _say_too_large(plan: Plan, gpus: int) -> Iterator[Sentence]:
    """Lines that no such box can run."""
    wanted = (
        (cell.name, terms.terms_of_cell(plan, cell.name, cell.own).gpus) for cell in plan.cells
    )
    if names := [name for name, each in wanted if each and each > gpus]:
        yield _(
            "{cells} {n:needs|need} more GPUs than that, and would fail: {gpus} at most in gpus=",
            cells=some(names, _MOST_NAMED),
            n=len(names),
            gpus=gpus,
        )
