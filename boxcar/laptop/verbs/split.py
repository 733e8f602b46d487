"""`invoke split`: spread the cells over the queue files so that all queues end at about one time.

Longest processing time first: never more than a third longer than the best possible, on boxes of
one speed. Shows what it would do; with `write` the local queue files are rewritten, for as long as
none of them is on the durable tier, where lines are only appended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import show, units
from boxcar.laptop.common.headings import heading
from boxcar.laptop.common.near import no_such
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queues import cell_cost, rewrite
from boxcar.laptop.project.queues.cell_cost import SECONDS, Cost, Sample
from boxcar.shared.errors import Command, DamagedError, InputError, Message
from boxcar.shared.files import journal
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _


@dataclass(frozen=True)
class Move:
    """One cell, where it stands and where it would."""

    cell: str
    task: str
    epochs: int
    queue: str
    to: str
    amount: float
    source: str


@dataclass(frozen=True)
class Load:
    """What one queue takes on its box, in the unit of the costs, as it is and as it would be."""

    queue: str
    box: str
    speed: float
    cells: int
    before: float
    after: float


def split(
    project: Project,
    *,
    speeds: Sequence[str] = (),
    minutes: Sequence[str] = (),
    write: bool = False,
    as_json: bool = False,
) -> int:
    """`speeds` are BOX=FACTOR, `minutes` CELL=NUMBER or TASK=NUMBER. Raises InputError, OSError."""
    plan = project.plan
    by_box = _numbers("--speed", speeds, "box", [box.name for box in plan.boxes])
    known = [name for cell in plan.cells for name in (cell.name, cell.task)]
    given_s = {
        name: 60 * n for name, n in _numbers("--minutes", minutes, _("cell or task"), known).items()
    }
    costs, unit = cell_cost.costs_of_cells(plan.cells, measured(project), by_box, given_s)
    by_queue = {
        queue: sum(by_box.get(box, 1.0) for box in boxes)
        for queue, boxes in plan.boxes_of_files.items()
    }
    moves, loads = _decide(project, costs, by_queue)
    if write and any(move.queue != move.to for move in moves):
        _write(project, moves)
    _report(moves, loads, unit, is_written=write, as_json=as_json)
    return 0


def finish(project_root: Path) -> None:
    """Before the project is opened: finish a split or a grid that was killed while it wrote."""
    if rewrite.finish(project_root):
        show.say(_("finished an interrupted rewrite of the queue files, as it was planned"))


def _decide(
    project: Project, costs: Mapping[str, Cost], speeds: Mapping[str, float]
) -> tuple[list[Move], list[Load]]:
    cells = project.plan.cells
    amounts = {name: cost.amount for name, cost in costs.items()}
    now = {queue: [c.name for c in cells if c.queue == queue] for queue in speeds}
    then = cell_cost.longest_first(now, amounts, speeds)
    before, after = (cell_cost.time_of_queues(queues, amounts, speeds) for queues in (now, then))
    to = {cell: queue for queue, names in then.items() for cell in names}
    moves = [
        Move(c.name, c.task, c.epochs, c.queue, to[c.name], amounts[c.name], costs[c.name].source)
        for c in cells
    ]
    boxes = {queue: ", ".join(each) for queue, each in project.plan.boxes_of_files.items()}
    loads = [
        Load(queue, boxes[queue], speeds[queue], len(then[queue]), before[queue], after[queue])
        for queue in speeds
    ]
    return moves, loads


def measured(project: Project) -> list[Sample]:
    """What earlier runs of this project took, from the journals that were pulled."""
    found: list[Sample] = []
    for path in sorted((project.root / "results").glob("*/journal/*.jsonl")):
        try:
            found += cell_cost.samples(journal.read_journal(path).events)
        except (DamagedError, OSError, KeyError, TypeError) as error:
            show.say(_("{file}: skipped: {error}", file=path, error=error))
    return found


def _numbers(flag: str, texts: Iterable[str], what: str, known: Sequence[str]) -> dict[str, float]:
    """NAME=NUMBER, each above 0. Raises InputError with all that is wrong."""
    found: dict[str, float] = {}
    problems = []
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            sample = text if text in known else next(iter(known), "NAME")
            pair = {"flag": flag, "text": text, "sample": sample}
            problems.append(_("{flag} {text}: expected NAME=NUMBER, such as {sample}=2", **pair))
        elif name not in known:
            unknown = no_such(name, known, what=what, of=_("the job"))
            problems.append(_("{head}: {text}", head=f"{flag} {text}", text=unknown))
        elif (value := _positive(number)) is None:
            above = _("expected a number above 0, found {found}", found=repr(number))
            problems.append(_("{head}: {text}", head=f"{flag} {text}", text=above))
        else:
            found[name] = value
    if problems:
        raise InputError(problems)
    return found


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _write(project: Project, moves: Sequence[Move]) -> None:
    _refuse_pushed(project)
    files = {name: path.resolve() for name, path in project.queue_files.items()}
    queues = {name: [move.cell for move in moves if move.to == name] for name in files}
    data = {name: path.read_bytes() for name, path in files.items()}
    after = rewrite.rewritten(data, queues)
    rewrite.write_queue(project.root, {files[name]: after[name] for name in files})


def _refuse_pushed(project: Project) -> None:
    """A box that does not answer may not be rented yet; a queue that was pushed by somebody else is
    then refused by `push`, and nothing is lost.
    """
    with open_site(project, show.say) as site:
        site.refresh()
        pushed = [name for name in project.queue_files if site.tier.queue(name).exists()]
        silent = site.silent_boxes()
    if pushed:
        raise InputError(
            _(
                "{queues}: already on the durable tier, where lines can only be appended or "
                "commented out. Nothing was changed. Append new cells to the queue that ends first",
                queues=", ".join(pushed),
            )
        )
    for box, why in silent.items():
        show.say(
            _("{box} did not answer ({why}); assuming that it has no queue yet", box=box, why=why)
        )


# --- what is shown


def _report(
    moves: Sequence[Move], loads: Sequence[Load], unit: str, *, is_written: bool, as_json: bool
) -> None:
    moving = [move for move in moves if move.queue != move.to]
    if as_json:
        written = is_written and bool(moving)
        show.json_document(
            "split", {"unit": unit, "is_written": written, "queues": loads, "cells": moves}
        )
    else:
        _tables(moves, loads, unit)
    if not moving:
        show.say(_("the queues are already balanced; nothing was changed"))
    elif is_written:
        show.say(_("{n} {n:cell|cells} moved, with the comments above {n:it|them}", n=len(moving)))
    else:
        show.say(
            Message(_("nothing was changed. To move the cells"), Command("split", ("--write",)))
        )


def _tables(moves: Sequence[Move], loads: Sequence[Load], unit: str) -> None:
    cells = [
        (
            move.cell,
            move.task,
            move.queue,
            _goes(move),
            _spelled(move.amount, unit),
            heading(move.source),
        )
        for move in moves
    ]
    show.table("cells", ("cell", "task", "queue", "moves to", "takes", "based on"), cells)
    queues = [
        (
            load.queue,
            load.box,
            load.speed,
            load.cells,
            _spelled(load.before, unit),
            _spelled(load.after, unit),
        )
        for load in loads
    ]
    show.table("queues", ("queue", "box", "speed", "cells", "takes now", "would take"), queues)


def _goes(move: Move) -> Sentence:
    if move.to == move.queue:
        return _("stays")
    return _("→ {queue}", queue=move.to)


def _spelled(amount: float, unit: str) -> str:
    return units.duration(amount) if unit == SECONDS else _("{n:.0f} epochs", n=amount)
