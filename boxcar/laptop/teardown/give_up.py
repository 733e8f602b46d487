"""Giving a cell up, by name and with a reason: it is written into the receipt, and said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from boxcar.laptop.common.near import the_run, unknown_of
from boxcar.laptop.results import results_folder
from boxcar.laptop.results.judge import judge, missing
from boxcar.laptop.teardown.gate import GateFacts
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.message import Command, Message
from boxcar.shared.paths import ResultPaths


def check_words(cells: Sequence[str], gone: Sequence[str], because: str | None) -> None:
    """Raise InputError unless what is given up comes with a reason, and a reason with something."""
    given_up = [*(f"--abandon {cell}" for cell in cells), *(f"--gone {box}" for box in gone)]
    if given_up and not (because and because.strip()):
        raise InputError(f'{given_up[0]} needs the reason: --because "..."')
    if because is not None and not given_up:
        raise InputError("--because needs what is given up: --abandon CELL, or --gone BOX")


def give_up(
    results: ResultPaths, facts: GateFacts, cells: Sequence[str], because: str
) -> RunReceipt:
    """Write the receipt in which `cells` are given up. Raises InputError, with nothing written.

    It needs no receipt of `verify`: a run that cannot be verified must have a way out.
    """
    found = {cell: _verdict(facts, cell, because) for cell in cells}
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
        yield judge(cell, rows, (), None)


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
    return judge(now[cell], rows, findings, because)
