"""Giving a cell up, by name and with a reason: it is written into the receipt, and said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common.near import the_run, unknown_of
from boxcar.laptop.results import results_folder
from boxcar.laptop.results.judge import judge_cell, missing
from boxcar.laptop.teardown.gate import GateFacts
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.message import Command, Message
from boxcar.shared.paths import ResultPaths


def reasons_to_give_up(
    cells: Sequence[str], gone: Sequence[str], because: str | Sequence[str] | None
) -> dict[str, str]:
    """Why each of these is given up: one reason for all, or one for each in their order. Raises
    InputError unless what is given up comes with a reason, and a reason with something.
    """
    whys = [because] if isinstance(because, str) else list(because or ())
    given_up = [*(f"--abandon {cell}" for cell in cells), *(f"--gone {box}" for box in gone)]
    if given_up and not (whys and all(why.strip() for why in whys)):
        raise InputError(f'{given_up[0]} needs the reason: --because "..."')
    if whys and not given_up:
        raise InputError("--because needs what is given up: --abandon CELL, or --gone BOX")
    if len(whys) == 1:
        whys *= len(given_up)
    if len(whys) != len(given_up) or (len(set(whys)) > 1 and cells and gone):
        raise InputError(
            f"{len(given_up)} given up ({', '.join(given_up)}) for {len(whys)} reasons: type one "
            "--because for all, or one for each cell, or for each box, in the same order"
        )
    return dict(zip([*cells, *gone], whys, strict=True))


def give_up(results: ResultPaths, facts: GateFacts, cells: Mapping[str, str]) -> RunReceipt:
    """Write the receipt in which `cells` are given up, each for its reason. Raises InputError, with
    nothing written.

    It needs no receipt of `verify`: a run that cannot be verified must have a way out.
    """
    found = {cell: _verdict(facts, cell, because) for cell, because in cells.items()}
    if problems := [text for text in found.values() if isinstance(text, Message)]:
        raise InputError(problems)
    given_up = {cell: new for cell, new in found.items() if isinstance(new, CellVerdict)}
    before = facts.receipt or _receipt_of_nothing(results, facts)
    verdicts = {verdict.cell: verdict for verdict in before.cells} | given_up
    made = replace(before, cells=tuple(verdicts.values()))
    atomic.write_whole(results.receipt, codec.to_document(made))
    return made


def _receipt_of_nothing(results: ResultPaths, facts: GateFacts) -> RunReceipt:
    """For where none could be read: no artifact of it was loaded, so it settles no cell."""
    if results.receipt.exists():
        results_folder.set_aside(results, results.receipt)
    return RunReceipt(facts.run, timestamp.utc_now(), tuple(_unloaded(facts)))


def _unloaded(facts: GateFacts) -> Iterator[CellVerdict]:
    for cell in facts.cells:
        artifacts = facts.artifacts_of(cell.cell)
        rows = missing(cell, (), artifacts=artifacts, is_tier_there=facts.is_tier_there)
        yield judge_cell(cell, rows, (), None)


def _verdict(facts: GateFacts, cell: str, because: str) -> CellVerdict | Message:
    """The cell as it is now and given up, or why it cannot be."""
    now = {known.cell: known for known in facts.cells}
    seen = {verdict.cell: verdict for verdict in facts.receipt.cells} if facts.receipt else {}
    if cell not in now:
        return unknown_of(cell, now, what="cell", of=the_run(facts.run))
    findings = seen[cell].findings if cell in seen else ()
    rows = missing(
        now[cell],
        findings,
        artifacts=facts.artifacts_of(cell),
        is_tier_there=facts.is_tier_there,
    )
    if not rows:
        return Message(f"{cell}: lacks nothing, so there is nothing to abandon", Command("verify"))
    return judge_cell(now[cell], rows, findings, because)
