"""Will it fit? Bytes and inodes that the cells still need, against what the tiers have left.

A box's data tier holds every cell that runs there until the box is gone; the durable tier holds
every result, and while a cell runs, its last checkpoint once more. Nothing is ever made smaller to
fit: a person decides.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, Row, Told, Verdict
from boxcar.laptop.project.cells_at_once import cells_at_once
from boxcar.laptop.project.resources import Range
from boxcar.shared.cell import terms
from boxcar.shared.disk import checked_copy
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.plan import SHARED, Cell, Plan
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire.facts import Facts, Folder

# Release, staged code, journals, logs: what a run takes besides its cells.
OWN_BYTES, OWN_FILES = 64 * 2**20, 500
# Manifest, receipt, claim, records of attempts: what a cell has besides what it writes.
FILES_A_CELL = 10
FILE_SYSTEM_SHARE = 0.05
_PLACES = {
    ("data",): mark("data"),
    ("durable",): mark("durable"),
    ("data", "durable"): mark("data and durable"),
}


@dataclass(frozen=True)
class Measured:
    """Bytes and files: what one cell was seen to write below {out}, or what many will; the most
    memory that one took, what of that is shared memory, and the code that each has for itself where
    several run side by side (0: not known).
    """

    size_bytes: int
    files: int
    memory_bytes: int = 0
    shm_bytes: int = 0
    code_bytes: int = 0


@dataclass(frozen=True)
class Load:
    """What will come to one place, and the file system that it comes to."""

    box: str
    place: str
    device: Hashable
    folder: Folder
    need: Measured


def check_space(
    told_by_box: Mapping[str, Told],
    plan: Plan,
    measured: Measured | None,
    wished: Range | None = None,
    verified: Container[str] = (),
) -> list[Row]:
    """A row for each file system. `wished` is resources: disk; `measured` is believed before it.

    `verified` cells are where they belong and need nothing more.
    """
    left = [cell for cell in plan.cells if cell.name not in verified]
    loads = list(_loads(told_by_box, plan, left, measured or Measured(0, 0)))
    groups: dict[Hashable, list[Load]] = {}
    for load in loads:
        groups.setdefault(load.device, []).append(load)
    share = len(left) / max(1, len(plan.cells))
    guess_bytes = int(wished.least * share) if wished and not measured else 0
    rows = [_row(group, wished, guess_bytes) for group in groups.values()]
    return rows if measured or wished or not left else [*rows, _unknown(left)]


def _loads(
    told_by_box: Mapping[str, Told], plan: Plan, left: Sequence[Cell], one: Measured
) -> Iterator[Load]:
    facts_by_box = {box: told.facts for box, told in told_by_box.items() if told.facts}
    own = _cells_by_box(plan, left, facts_by_box)
    beside = {
        box: max(1, cells_at_once(plan, facts.gpus_for_cells))
        for box, facts in facts_by_box.items()
    }
    for box, facts in facts_by_box.items():
        need = _need(own[box], one)
        size_bytes = need.size_bytes + (beside[box] - 1) * one.code_bytes
        yield from _load(box, "data", facts, replace(need, size_bytes=size_bytes))
    has_mirror = any(terms.terms_of_cell(plan, cell.name).resume for cell in left)
    mirrors = {box: min(beside[box], len(own[box])) if has_mirror else 0 for box in facts_by_box}
    if plan.durable_scope != SHARED:
        for box, facts in facts_by_box.items():
            yield from _load(box, "durable", facts, _need(own[box], one, mirrors=mirrors[box]))
        return
    # All look at one file system; who sees the least left is believed.
    durable = {box: facts.places.durable for box, facts in facts_by_box.items()}
    free = {box: one.free_bytes for box, one in durable.items() if one.free_bytes is not None}
    for box in sorted(free, key=lambda box: free[box])[:1]:
        name = box if len(facts_by_box) == 1 else ALL
        yield from _load(
            name, "durable", facts_by_box[box], _need(left, one, mirrors=sum(mirrors.values()))
        )


def room_of_box(plan: Plan, one: Measured) -> int:
    """Bytes for the cells of the box that has most of them: on its data tier, and once more where
    its durable tier is its own.
    """
    most = max(_cells_by_box(plan, plan.cells).values(), key=len, default=[])
    copies = 1 if plan.durable_scope == SHARED else 2
    return copies * _need(most, one, mirrors=1).size_bytes


def _cells_by_box(
    plan: Plan, cells: Sequence[Cell], boxes: Iterable[str] = ()
) -> dict[str, list[Cell]]:
    """Of a pool even shares."""
    own: dict[str, list[Cell]] = {box: [] for box in boxes}
    for cell in cells:
        pool = plan.boxes_of_files[cell.queue]
        own.setdefault(pool[cell.index % len(pool)], []).append(cell)
    return own


def _need(cells: Sequence[Cell], one: Measured, *, mirrors: int = 0) -> Measured:
    """What these cells will write, and the checkpoints of so many that run at a time."""
    count = len(cells) + mirrors
    files = OWN_FILES + count * one.files + len(cells) * FILES_A_CELL
    return Measured(OWN_BYTES + count * one.size_bytes, files)


def _load(box: str, place: str, facts: Facts, need: Measured) -> Iterator[Load]:
    folder: Folder = getattr(facts.places, place)
    if folder.free_bytes is None:
        return  # that it cannot be read has a row of its own
    device = (facts.hostname, facts.boot_id, folder.device)
    yield Load(box, place, device, folder, need)


def _row(group: Sequence[Load], wished: Range | None, guess_bytes: int) -> Row:
    folders = [load.folder for load in group]
    free_bytes = min(folder.free_bytes or 0 for folder in folders)
    inodes = [folder.free_inodes for folder in folders if folder.free_inodes is not None]
    reasons = [
        *_too_small(group, wished),
        *_too_few_bytes(free_bytes, sum(load.need.size_bytes for load in group)),
        *_too_few_inodes(inodes, sum(load.need.files for load in group)),
    ]
    verdict: Verdict = "refuse" if reasons else "ok"
    if not reasons and free_bytes < guess_bytes:
        verdict = "warn"
        reasons = [
            _(
                "the remaining cells may need {size} (resources: disk)",
                size=units.size(guess_bytes),
            )
        ]
    places = Sentence(_PLACES[tuple(sorted({load.place for load in group}))])
    free = units.size(free_bytes)
    found = _("{size} free", size=free)
    if inodes:
        found = _("{size} free, {inodes:,} inodes", size=free, inodes=min(inodes))
    boxes = {load.box for load in group}
    box = group[0].box if len(boxes) == 1 else ALL
    reason = reasons[0] if len(reasons) == 1 else "; ".join(reasons)
    return Row(box, _("room: {places}", places=places), verdict, found, reason)


def _too_small(group: Sequence[Load], wished: Range | None) -> list[str]:
    """The wish is for the whole disk, of which a file system keeps some for itself."""
    data = [load.folder.size_bytes or 0 for load in group if load.place == "data"]
    if wished is None or not data or min(data) >= wished.least * (1 - FILE_SYSTEM_SHARE):
        return []
    return [
        _(
            "the disk has {size}, but the job requires {text}: expand it",
            size=units.size(min(data)),
            text=wished.text,
        )
    ]


def _too_few_bytes(free_bytes: int, needs_bytes: int) -> list[str]:
    if free_bytes >= needs_bytes:
        return []
    return [
        _(
            "{size} are needed: free some space, expand the disk, or remove cells from the queue",
            size=units.size(needs_bytes),
        )
    ]


def _too_few_inodes(inodes: Sequence[int], needs_files: int) -> list[str]:
    if not inodes or min(inodes) >= needs_files:
        return []
    return [
        _(
            "{needs_files:,} inodes are needed: delete or pack small files, or remove cells from "
            "the queue. A larger disk does not always have more inodes",
            needs_files=needs_files,
        )
    ]


def _unknown(left: Sequence[Cell]) -> Row:
    reason = Message(
        _(
            "only Boxcar's own files were counted; set resources: {{disk: 100GB}} in job.yaml, or "
            "measure the cells"
        ),
        Command("smoke"),
    )
    return Row(ALL, "room", "warn", _("{n} {n:cell|cells} of unknown size", n=len(left)), reason)


# Whether what a run will write on this machine has any room at all, before something is sent.


def folders_without_room(folders: Mapping[str, Path]) -> list[str]:
    """A sentence with numbers for each full disk, by what lies there. Raises OSError."""
    found = {what: checked_copy.lack_of_room(nearest_folder(at)) for what, at in folders.items()}
    return [f"{what}: {lack}" for what, lack in found.items() if lack]


def nearest_folder(folder: Path) -> Path:
    """The folder, or the one above it where it will be made."""
    return next(step for step in (folder, *folder.parents) if step.is_dir())
