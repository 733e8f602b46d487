"""What verify says of a run, as a table and notes, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.laptop.common import show, units
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.results import bring_cell
from boxcar.laptop.results.judge import how_checked
from boxcar.laptop.run.roster import Roster
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.judged import Judged
from boxcar.shared.catalogue.board import state_sentence
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import digest
from boxcar.shared.files.receipt import RunReceipt
from boxcar.shared.message import Command, Message
from boxcar.shared.metrics import measure

METRICS_SHOWN = 3


def verify_document(
    site: Site, found: Roster, made: RunReceipt, cells: Sequence[Judged]
) -> dict[str, Any]:
    """What `--json` prints. What a cell lacks comes with the command that fixes it."""
    return {
        "run": made.run,
        "receipt": str(site.results.receipt),
        "digest": made.digest,
        "is_full": made.is_full,
        "doubts": found.doubts,
        "strays": [str(stray) for stray in found.strays],
        "cells": [
            {
                "cell": cell.facts.cell,
                "queue": cell.facts.queue,
                "state": cell.state,
                "because": cell.verdict.because,
                "missing": cell.missing,
                "metrics": cell.metrics,
                "metric_notes": measure.notes(cell.verdict.metrics),
                "checked": how_checked(cell.verdict.findings),
                "files": cell.files,
                "size_bytes": cell.size_bytes,
                "carried": bring_cell.carried_document(cell.facts.pulled),
                "release": cell.release,
                "warnings": cell.warnings,
                **({"doubt": cell.doubt} if cell.doubt else {}),
            }
            for cell in cells
        ],
    }


def verify_report(
    site: Site, made: RunReceipt, cells: Sequence[Judged], page: str, *, is_proven: bool
) -> None:
    rows = [
        (
            cell.facts.cell,
            state_sentence(cell.state),
            how_checked(cell.verdict.findings),
            named_numbers(cell.metrics, METRICS_SHOWN),
            cell.files or None,
            units.size(cell.size_bytes) if cell.files else None,
            digest.short(cell.release) if cell.release else None,
        )
        for cell in cells
    ]
    columns = ("cell", "state", "checked", "metric", "files", "size", "release")
    title = Sentence("good_run.results_of", run=made.run)
    show.table(title, columns, rows, first_to_go=("release", "files"))
    for cell in cells:
        for row in cell.missing:
            show.say(row.message.under(row.cell or made.run))
        if cell.verdict.because is not None:
            _say_of(cell, Sentence("good_run.abandoned", because=cell.verdict.because))
        if cell.verdict.is_dropped:
            _say_of(cell, Sentence("good_run.dropped"))
        if cell.doubt:
            _say_of(cell, Sentence("board.in_doubt", doubt=cell.doubt))
        for warning in cell.warnings:
            _say_of(cell, Sentence("looks.warning", text=warning))
        for name, note in measure.notes(cell.verdict.metrics).items():
            _say_of(cell, Sentence("good_run.no_number", metric=name, note=note))
    for sentence in bring_cell.carried_sentences([c.facts.pulled for c in cells if c.facts.pulled]):
        show.say(sentence)
    settled = sum(cell.verdict.is_settled for cell in cells)
    has_dropped = any(cell.verdict.is_dropped for cell in cells)
    which = "settled_dropped" if has_dropped else "settled"
    papers = {"receipt": digest.short(made.digest), "file": site.results.receipt}
    show.say(Sentence(f"good_run.{which}", settled=settled, n=len(cells), **papers))
    show.say(Message(page, Command("report")))
    if is_proven:
        show.say(Message(Sentence("good_run.next"), Command("down")))


def _say_of(cell: Judged, text: Sentence) -> None:
    show.say(Sentence("good_run.under", head=cell.facts.cell, text=text))
