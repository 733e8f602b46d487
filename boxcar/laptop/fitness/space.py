"""Will it fit? Bytes and inodes that the cells still need, against what the tiers have left. Pure.

A box's data tier holds every cell that runs there until the box is gone; the durable tier holds
every result, and while a cell runs, its last checkpoint once more. Nothing is ever made smaller to
fit: a person decides.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, Row, Told, Verdict
from boxcar.laptop.project.resources import Range
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import SHARED, Cell, Plan
from boxcar.shared.message import Command, Message
from boxcar.shared.record import dataclass
from boxcar.shared.wire.facts import Facts, Folder

# Release, staged code, journals, logs: what a run takes besides its cells.
OWN_BYTES, OWN_FILES = 64 * 2**20, 500
# Manifest, receipt, claim, records of attempts: what a cell has besides what it writes.
FILES_A_CELL = 10
FILE_SYSTEM_SHARE = 0.05


@dataclass(frozen=True)
class Measured:
    """Bytes and files: what one cell was seen to write below {out}, or what many will."""

    size_bytes: int
    files: int


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
    own = {box: [c for c in left if plan.queues[c.queue] == box] for box in facts_by_box}
    for box, facts in facts_by_box.items():
        yield from _load(box, "data", facts, _need(own[box], one))
    mirrors = any(terms.terms_of_cell(plan, cell.name).resume for cell in left)
    if plan.durable_scope != SHARED:
        for box, facts in facts_by_box.items():
            yield from _load(box, "durable", facts, _need(own[box], one, mirrors=mirrors))
        return
    # All look at one file system; who sees the least left is believed.
    durable = {box: facts.places.durable for box, facts in facts_by_box.items()}
    free = {box: one.free_bytes for box, one in durable.items() if one.free_bytes is not None}
    for box in sorted(free, key=lambda box: free[box])[:1]:
        name = box if len(facts_by_box) == 1 else ALL
        yield from _load(name, "durable", facts_by_box[box], _need(left, one, mirrors=mirrors))


def _need(cells: Sequence[Cell], one: Measured, *, mirrors: bool = False) -> Measured:
    """What these cells will write; with `mirrors` also the checkpoint of each that may run."""
    count = len(cells) + (len({cell.queue for cell in cells}) if mirrors else 0)
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
        reasons = [Sentence("audit.may_need", size=units.size(guess_bytes))]
    places = Sentence(f"audit.{'_and_'.join(sorted({load.place for load in group}))}")
    free = units.size(free_bytes)
    found = Sentence("audit.free", size=free)
    if inodes:
        found = Sentence("audit.free_inodes", size=free, inodes=min(inodes))
    boxes = {load.box for load in group}
    box = group[0].box if len(boxes) == 1 else ALL
    reason = reasons[0] if len(reasons) == 1 else "; ".join(reasons)
    return Row(box, Sentence("audit.room_of", places=places), verdict, found, reason)


def _too_small(group: Sequence[Load], wished: Range | None) -> list[str]:
    """The wish is for the whole disk, of which a file system keeps some for itself."""
    data = [load.folder.size_bytes or 0 for load in group if load.place == "data"]
    if wished is None or not data or min(data) >= wished.least * (1 - FILE_SYSTEM_SHARE):
        return []
    return [f"the disk has {units.size(min(data))}, and the job asks for {wished.text}: expand it"]


def _too_few_bytes(free_bytes: int, needs_bytes: int) -> list[str]:
    if free_bytes >= needs_bytes:
        return []
    need = f"{units.size(needs_bytes)} are needed"
    return [f"{need}: make room, expand the disk, or take cells out of the queue"]


def _too_few_inodes(inodes: Sequence[int], needs_files: int) -> list[str]:
    if not inodes or min(inodes) >= needs_files:
        return []
    return [
        f"{needs_files:,} inodes are needed: remove small files or pack them, or take cells out of "
        "the queue; a larger disk does not always have more of them"
    ]


def _unknown(left: Sequence[Cell]) -> Row:
    reason = Message(Sentence("audit.only_own"), Command("smoke"))
    return Row(ALL, "room", "warn", Sentence("audit.unknown_size", n=len(left)), reason)
