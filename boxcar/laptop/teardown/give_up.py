"""Giving a cell up, by name and with a reason: it is written into the receipt, and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boxcar.laptop.common.near import no_such
from boxcar.laptop.results.judge import judge, missing
from boxcar.laptop.teardown.gate import GateFacts
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
    """Write the receipt in which `cells` are given up. Raises InputError, with nothing written."""
    if facts.receipt is None:
        raise InputError("there is no receipt yet to record it in", Command("verify"))
    found = {cell: _verdict(facts, cell, because) for cell in cells}
    if problems := [text for text in found.values() if isinstance(text, Message)]:
        raise InputError(problems)
    given_up = {cell: new for cell, new in found.items() if isinstance(new, CellVerdict)}
    verdicts = tuple(given_up.get(verdict.cell, verdict) for verdict in facts.receipt.cells)
    made = replace(facts.receipt, cells=verdicts)
    atomic.write_whole(results.receipt, codec.to_document(made))
    return made


def _verdict(facts: GateFacts, cell: str, because: str) -> CellVerdict | Message:
    """The cell as it is now and given up, or why it cannot be."""
    now = {known.cell: known for known in facts.cells}
    seen = {verdict.cell: verdict for verdict in facts.receipt.cells} if facts.receipt else {}
    if cell not in now:
        return Message(no_such(cell, now, what="cell", of=f"the run {facts.run}"))
    if cell not in seen:
        return Message(f"{cell}: is not in the receipt yet", Command("verify"))
    findings = seen[cell].findings
    rows = missing(
        now[cell], findings, artifacts=facts.artifacts, is_tier_there=facts.is_tier_there
    )
    if not rows:
        return Message(f"{cell}: lacks nothing, so there is nothing to abandon", Command("verify"))
    return judge(now[cell], rows, findings, because)
