"""What was brought here from a lost box, lent to the one that was rented in its place: results that
are proven here, which are not trained again, and the checkpoints of cells that had not ended.

Of a result the box gets what is small: its manifest and receipt, its claim, and a word that it is
proven. Its files travel only where another cell comes after it. Whether any of that is needed there
the box says itself: what the laptop knows of it may be what the lost one had reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from boxcar import __version__
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.results import bring_checkpoint, compare
from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.results.results_folder import Proof, proof_of_cell, receipt_of_its_box
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.shared import paths, timestamp
from boxcar.shared.cell import terms
from boxcar.shared.errors import Command, DamagedError, InputError, Message, TemporaryError, some
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.run_asks import LentResult

TAKE_S = 600.0  # the box hashes what may be tens of gigabytes
# One question is one line: what is more goes with the next.
MOST_BYTES = 4 * 1024 * 1024
_MOST_NAMED = 5

# A result as it lies here, compared and judged just now.
Here = tuple[CellFacts, Proof]


# --- results


def lend_results(run: OpenRun, queue: str, bar: Progress) -> Iterator[str]:
    """Lend a queue without an agent what its box has lost; sentences for a person.

    Raises InputError where a result here was never looked into: it may be good, and to train it
    again costs money. Raises BoxcarError and OSError where one cannot be lent, as then it would be
    trained again.
    """
    names = _results_of(run, queue)
    if not names:
        return
    known = _ask(run, queue, names)
    found = _here(run, queue, [cell for cell in known.unknown if cell in names])
    if unseen := [_unseen(run, one) for one in found if one[1].is_only_unseen]:
        raise InputError(unseen)
    for facts, judged in found:
        if judged.lacks:
            what = judged.lacks[0].what
            yield _(
                "{cell}: is trained again, because its copy here fails the check: {what}",
                cell=facts.cell,
                what=what,
            )
    proven = [one for one in found if not one[1].lacks]
    cells = [facts.cell for facts, _ in proven]
    needed = _needed(run, queue, done={*known.verified, *cells})
    _send(run, queue, proven, needed, bar)
    if cells:
        yield (
            _(
                "{queue}: {box} does not train these again, since their verified results are "
                "here: {cells}. To retrain one, move its folder out of {folder} before a launch",
                queue=queue,
                box=run.plan.queues[queue],
                cells=some(cells, _MOST_NAMED),
                folder=run.results.cells,
            )
        )
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
    return run.ask(run.plan.queues[queue], question)


def _results_of(run: OpenRun, queue: str) -> list[str]:
    """The cells of the queue of which a result lies here; also those whose line is gone by now."""
    planned = {cell.name: cell.queue for cell in run.plan.cells}
    found = []
    for path in sorted(run.results.cells.glob(f"*/{paths.MANIFEST}")):
        try:
            made = manifest.read_manifest(path)
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
    try:
        last = receipt.read_run(run.results.receipt)
        seen, at = {verdict.cell: verdict for verdict in last.cells}, last.made_at
    except (DamagedError, OSError):
        seen, at = {}, timestamp.utc_now()  # `verify` writes it anew
    facts = [compare.look_here(run, RosterCell(cell, queue)) for cell in cells]
    return [
        (
            one,
            proof_of_cell(
                one, seen.get(one.cell), at, terms.terms_of_cell(run.plan, one.cell).artifacts
            ),
        )
        for one in facts
    ]


def _unseen(run: OpenRun, one: Here) -> Message:
    cell, what = one[0].cell, one[1].lacks[0].what
    return Message(
        _(
            "{cell}: its result is here, but {what}, so it is unclear whether to train it again. "
            "To retrain it, move {folder} away; otherwise",
            cell=cell,
            what=what,
            folder=run.results.cell(cell),
        ),
        Command("verify", note=_("then launch")),
    )


def _send(
    run: OpenRun, queue: str, proven: Sequence[Here], needed: Collection[str], bar: Progress
) -> None:
    """The files first, then what makes them count."""
    box = run.plan.queues[queue]
    lent = []
    for facts, judged in proven:
        has_files = facts.cell in needed
        if has_files:
            target = run.folder_on(box, str(run.project.on_tier.lent(facts.cell)))
            going = bar.part(compare.size_bytes(run, facts.cell), box)
            folders.send_folder(run.results.cell(facts.cell), target, on_bytes=going.at)
            going.end()
        lent.append(_lent(run, queue, facts, judged, has_files=has_files))
    for part in _parts(lent):
        answer = run.ask(box, run_asks.TakeResults(queue, part), timeout_s=TAKE_S)
        for cell, problem in answer.lacking.items():
            what = _(
                "{cell}: its result did not reach {box} intact: {problem}",
                cell=cell,
                box=box,
                problem=problem,
            )
            raise TemporaryError(what, Command("launch"))


def _lend_files(run: OpenRun, queue: str, cells: Sequence[str], bar: Progress) -> Iterator[str]:
    box = run.plan.queues[queue]
    found = _here(run, queue, cells)
    proven = [one for one in found if not one[1].lacks]
    _send(run, queue, proven, [facts.cell for facts, _ in proven], bar)
    for facts, judged in found:
        said = _("its files were sent to {box}, because other cells come after it", box=box)
        if judged.lacks:
            said = _(
                "other cells come after it, but its files are not on {box}. Its copy here fails "
                "the check: {what}",
                box=box,
                what=judged.lacks[0].what,
            )
        yield f"{facts.cell}: {said}"


def _lent(
    run: OpenRun, queue: str, facts: CellFacts, judged: Proof, *, has_files: bool
) -> LentResult:
    assert facts.pulled
    cell, folder, at = facts.cell, run.results.cell(facts.cell), timestamp.utc_now()
    saying = facts.pulled.manifest.saying
    return LentResult(
        document=Accepted(
            *(run.plan.run, cell, facts.pulled.sha256, judged.at, judged.unpickled, __version__),
            is_lent=True,
        ),
        claim=Claim(cell, queue, run.plan.queues[queue], at, saying=saying),
        manifest=(folder / paths.MANIFEST).read_bytes(),
        receipt=(folder / paths.RECEIPT).read_bytes() if receipt_of_its_box(facts) else None,
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


# --- checkpoints


def lend_checkpoints(run: OpenRun, queue: str, bar: Progress) -> Iterator[str]:
    """Send what the cells of a queue without an agent can continue from; a sentence for each, and
    its bytes to `bar`.

    A checkpoint that is damaged here is said, and its cell begins anew. Raises BoxcarError and
    OSError where one cannot be sent: a launch that went on would lose hours of work.
    """
    for cell in run.plan.cells:
        if cell.queue == queue:
            yield from lend_checkpoint(run, queue, cell.name, bar)


def lend_checkpoint(run: OpenRun, queue: str, cell: str, bar: Progress) -> Iterator[str]:
    """The same of one cell, where there is something to lend: the bytes first, then what makes them
    count.
    """
    pointer = bring_checkpoint.here(run, cell)
    if pointer is None:
        return
    question, box = run_asks.TakeCheckpoint(queue, cell, pointer), run.plan.queues[queue]
    answer = run.ask(box, question, timeout_s=TAKE_S)
    if answer.is_lacking:
        if difference := manifest.compare_one(run.results.resume(cell), pointer.file):
            wrong = difference.sentence
            yield _(
                "{cell}: starts over, because its checkpoint here is not intact: {wrong}",
                cell=cell,
                wrong=wrong,
            )
            return
        there = run.folder_on(box, str(run.project.on_tier.resume(cell)))
        part = bar.part(pointer.file.size_bytes, box)
        folders.send_folder(run.results.resume(cell), there, on_bytes=part.at)
        part.doing = _("checked by the box")
        answer = run.ask(box, question, timeout_s=TAKE_S)
        part.end()
    if answer.is_lacking:
        raise TemporaryError(
            _("{cell}: its checkpoint did not reach {box} intact", cell=cell, box=box),
            Command("launch"),
        )
    if answer.is_taken:
        yield _(
            "{cell}: resumes on {box} from its checkpoint of {at}",
            cell=cell,
            box=box,
            at=pointer.at,
        )
