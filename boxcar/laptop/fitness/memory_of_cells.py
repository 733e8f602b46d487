"""Whether a box's memory, and its /dev/shm, hold all cells that run side by side there, by what one
took in `smoke`. Only warned of: a CPU's try is no GPU's training. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import Row, Told
from boxcar.laptop.fitness.space import Measured
from boxcar.laptop.project.cells_at_once import cells_at_once
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import Sentence, _, mark

MEMORY, SHM = "memory of cells", "/dev/shm of cells"
_TOO_MUCH = mark(
    "{n} {n:cell|cells} side by side {n:needs|need} {n} x {size} of {what}, as smoke measured it, "
    "and there {n:is|are} {all}"
)
_RAM, _IN_SHM = mark("RAM"), mark("/dev/shm")


def judge_memory_of_cells(
    told_by_box: Mapping[str, Told], plan: Plan, one: Measured | None
) -> Iterator[Row]:
    """A row for each box of which it is known, and where something is wrong or several run."""
    for box, told in told_by_box.items():
        if told.facts is None or one is None:
            continue
        cells = cells_at_once(plan, told.facts.gpus_for_cells)
        limits = (told.facts.memory_limit_bytes, told.facts.memory_total_bytes)
        has_bytes = min(filter(None, limits), default=None)
        yield from _judge(box, MEMORY, cells, one.memory_bytes, has_bytes)
        yield from _judge(box, SHM, cells, one.shm_bytes, told.facts.shm_size_bytes)


def _judge(
    box: str, what: str, cells: int, each_bytes: int, has_bytes: int | None
) -> Iterator[Row]:
    if not (cells and each_bytes and has_bytes):
        return
    size = units.size(each_bytes)
    found = _("{n} x {size} of {all}", n=cells, size=size, all=units.size(has_bytes))
    if cells * each_bytes <= has_bytes:
        if cells > 1:
            yield Row(box, what, "ok", found)
        return
    named = Sentence(_RAM if what == MEMORY else _IN_SHM)
    why: Sentence = Sentence(_TOO_MUCH, n=cells, size=size, what=named, all=units.size(has_bytes))
    if (fit := has_bytes // each_bytes) and cells > 1:
        why = _("{why}: write slots: {fit} in job.yaml, or rent a larger box", why=why, fit=fit)
    yield Row(box, what, "warn", found, why)
