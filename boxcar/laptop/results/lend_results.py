"""Results that were brought here from a lost box, lent to the one that was rented in its place.

What is proven here is not trained again. The box gets a small record of it, its manifest and its
receipt, and nothing is uploaded; only of a result that another cell comes after it gets the files.
Whether any of that is needed there the box says itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from boxcar import __version__
from boxcar.laptop.common import units
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results import compare
from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.results.proven import Proof, proof, receipt_of_its_box
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.transfer import folders
from boxcar.shared import paths, timestamp
from boxcar.shared.cell import terms
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.files.cell_claim import Claim
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.receipt import RunReceipt
from boxcar.shared.message import Command, Message, counted, some
from boxcar.shared.record import dataclass
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.run_asks import LentResult

TAKE_S = 600.0  # the box hashes what may be tens of gigabytes
# One question is one line: what is more goes with the next.
MOST_BYTES = 4 * 1024 * 1024
_MOST_NAMED = 5


@dataclass(frozen=True)
class Here:
    """A result as it lies here, compared and judged just now."""

    facts: CellFacts
    proof: Proof

    @property
    def cell(self) -> str:
        return self.facts.cell

    @property
    def made(self) -> Manifest:
        assert self.facts.pulled
        return self.facts.pulled.manifest


def lend(run: OpenRun, queue: str, bar: Progress) -> Iterator[str]:
    """Lend a queue without an agent what its box has lost; sentences for a person.

    Raises InputError where a result here was never looked into: it may be good, and to train it
    again costs money. Raises BoxcarError and OSError where one cannot be lent, as then it would be
    trained again.
    """
    names = _results_of(run, queue)
    if not names:
        return
    known = _ask(run, queue, names)
    lost = [cell for cell in known.unknown if cell in names]
    if lost:
        size = units.size(sum(compare.size_bytes(run, cell) for cell in lost))
        results = counted(len(lost), "result")
        yield f"{run.plan.queues[queue]} has lost {results}, of which a copy is here ({size})"
    found = _here(run, queue, lost)
    if unseen := [one for one in found if one.proof.is_only_unseen]:
        raise InputError([_unseen(run, one) for one in unseen])
    proven = {one.cell: one for one in found if not one.proof.lacks}
    for one in found:
        if one.proof.lacks:
            yield f"{one.cell}: is trained again: what lies here of it {one.proof.lacks[0].what}"
    needed = _needed(run, queue, done={*known.verified, *proven})
    _send(run, queue, list(proven.values()), needed, bar)
    if proven:
        yield _said(run, queue, list(proven))
    yield from _lend_files(run, queue, [cell for cell in known.bare if cell in needed], bar)


def lend_files(run: OpenRun, queue: str, bar: Progress) -> Iterator[str]:
    """Send the files of what was lent where cells of the queue come after it by now. Raises as
    above.
    """
    named = _needed(run, queue, done=())
    if names := [cell for cell in _results_of(run, queue) if cell in named]:
        known = _ask(run, queue, names)
        needed = _needed(run, queue, done=known.verified)
        yield from _lend_files(run, queue, [cell for cell in known.bare if cell in needed], bar)


def _ask(run: OpenRun, queue: str, names: Sequence[str]) -> run_asks.ResultsKnown:
    """What the box knows of these, and of the cells that come after one of them."""
    later = [cell.name for cell in run.plan.cells if {*cell.own.after} & {*names}]
    question = run_asks.KnowResults(queue, tuple(dict.fromkeys([*names, *later])))
    return run.boxes.ask(run.plan.queues[queue], question)


def _said(run: OpenRun, queue: str, cells: Sequence[str]) -> str:
    return (
        f"{queue}: not trained again on {run.plan.queues[queue]}, as their results are here, "
        f"proven: {some(cells, _MOST_NAMED)}. To have one trained again, move its folder away from "
        f"{run.results.cells} before a launch"
    )


def _results_of(run: OpenRun, queue: str) -> list[str]:
    """The cells of the queue of which a result lies here; also those whose line is gone by now."""
    planned = {cell.name: cell.queue for cell in run.plan.cells}
    found = []
    for path in sorted(run.results.cells.glob(f"*/{paths.MANIFEST}")):
        try:
            made = manifest.read(path)
        except (DamagedError, OSError):
            continue  # `verify` says so
        if made.cell == path.parent.name and planned.get(made.cell, made.queue) == queue:
            found.append(made.cell)
    return found


def _needed(run: OpenRun, queue: str, done: Collection[str]) -> set[str]:
    """What the cells of the queue come after that are still to be run."""
    to_run = (cell for cell in run.plan.cells if cell.queue == queue and cell.name not in done)
    return {name for cell in to_run for name in cell.own.after}


def _here(run: OpenRun, queue: str, cells: Sequence[str]) -> list[Here]:
    """Every file of these is hashed."""
    last = _last_receipt(run)
    seen = {verdict.cell: verdict for verdict in last.cells} if last else {}
    at = last.made_at if last else timestamp.utc_now()
    facts = [compare.look_here(run, RosterCell(cell, queue)) for cell in cells]
    return [
        Here(one, proof(one, seen.get(one.cell), at, terms.of_cell(run.plan, one.cell).artifacts))
        for one in facts
    ]


def _last_receipt(run: OpenRun) -> RunReceipt | None:
    try:
        return receipt.read_run(run.results.receipt)
    except (DamagedError, OSError):
        return None  # `verify` writes it anew


def _unseen(run: OpenRun, one: Here) -> Message:
    return Message(
        f"{one.cell}: its result lies here, and {one.proof.lacks[0].what}, so whether it is to be "
        f"trained again is not known. To have it trained again in any case, move "
        f"{run.results.cell(one.cell)} away; else",
        Command("verify", note="then launch"),
    )


def _send(
    run: OpenRun, queue: str, proven: Sequence[Here], needed: Collection[str], bar: Progress
) -> None:
    """The files first, then what makes them count."""
    box = run.plan.queues[queue]
    for one in proven:
        if one.cell in needed:
            target = run.boxes.place(box, str(run.project.on_tier.lent(one.cell)))
            going = bar.part(compare.size_bytes(run, one.cell), box)
            folders.send_folder(run.results.cell(one.cell), target, on_bytes=going.at)
            going.end()
    lent = [_lent(run, queue, one, has_files=one.cell in needed) for one in proven]
    for part in _parts(lent):
        answer = run.boxes.ask(box, run_asks.TakeResults(queue, part), timeout_s=TAKE_S)
        if answer.lacking:
            cell, problem = next(iter(answer.lacking.items()))
            what = f"{cell}: its result did not come to {box} whole: {problem}"
            raise TemporaryError(what, Command("launch"))


def _lend_files(run: OpenRun, queue: str, cells: Sequence[str], bar: Progress) -> Iterator[str]:
    box = run.plan.queues[queue]
    found = _here(run, queue, cells)
    proven = [one for one in found if not one.proof.lacks]
    _send(run, queue, proven, {one.cell for one in proven}, bar)
    for one in found:
        if one.proof.lacks:
            yield (
                f"{one.cell}: others come after it, and its files are not on {box}. What lies here "
                f"of it {one.proof.lacks[0].what}"
            )
        else:
            yield f"{one.cell}: its files were sent to {box}, because others come after it"


def _lent(run: OpenRun, queue: str, one: Here, *, has_files: bool) -> LentResult:
    assert one.facts.pulled
    folder, at = run.results.cell(one.cell), timestamp.utc_now()
    document = Accepted(
        run=run.plan.run,
        cell=one.cell,
        manifest_sha256=one.facts.pulled.sha256,
        at=one.proof.at,
        unpickled=one.proof.unpickled,
        boxcar=__version__,
        is_lent=True,
    )
    return LentResult(
        document=document,
        claim=Claim(one.cell, queue, run.plan.queues[queue], at, saying=one.made.saying),
        manifest=(folder / paths.MANIFEST).read_bytes(),
        receipt=(folder / paths.RECEIPT).read_bytes() if receipt_of_its_box(one.facts) else None,
        has_files=has_files,
    )


def _parts(lent: Sequence[LentResult]) -> Iterator[tuple[LentResult, ...]]:
    part: list[LentResult] = []
    size_bytes = 0
    for one in lent:
        own_bytes = len(one.manifest) + len(one.receipt or b"")
        if part and size_bytes + own_bytes > MOST_BYTES:
            yield tuple(part)
            part, size_bytes = [], 0
        part.append(one)
        size_bytes += own_bytes
    if part:
        yield tuple(part)
