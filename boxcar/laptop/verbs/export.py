"""`invoke export`: what is proven, handed to a tracker as files; nothing is sent anywhere.

Made of the receipt and of what lies beside it, as a report, so it asks no box and works after the
teardown. A second export writes what is new, and no byte of the rest.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from boxcar.laptop.common import home, show
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.project.project import Project
from boxcar.laptop.trackers import export_cells, exported_cell, tracker
from boxcar.laptop.trackers.export_cells import LEFT_OUT, UNCHANGED, Due, Outcome
from boxcar.laptop.trackers.exported_cell import ExportedCell, ExportRecord, offline
from boxcar.laptop.view.report import gather
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.sentence import _

FOLDER = "export"


def export(project: Project, asked: Asked, *, to: str, out: str = "", as_json: bool = False) -> int:
    """Returns 1 where a cell is left out because it is not proven, unless that was asked for.

    Raises InputError for a tracker that does not exist or is not installed, and where nothing is
    verified.
    """
    tracker.check_name(to)
    cells = list(export_cells.of_report(project, gather.report_of(project, asked)))
    folder = Path(out) if out else gather.results_of(project, asked.runs[0]).root / FOLDER / to
    proven = [cell for cell in cells if isinstance(cell, ExportedCell)]
    with home.results_to(folder):
        atomic.make_folder(folder)
    exported_cell.read_export_record(folder, to)  # before a lock is left in somebody else's folder
    held = _hold(folder)
    try:
        record = exported_cell.read_export_record(folder, to)
        wanted = export_cells.due(folder, record, proven)
        record = _write(folder, record, wanted, to) if wanted else record
    finally:
        os.close(held)
    found = list(export_cells.outcomes(cells, wanted, record))
    step = tracker.next_step(to, folder)
    if as_json:
        show.json_document(
            "export", {"to": to, "folder": str(folder), "cells": found, "next": step}
        )
    else:
        _report(folder, found, step)
    return 1 if _left_out(found) and not asked.is_incomplete_shown else 0


def _hold(folder: Path) -> int:
    held = lock.try_hold(folder / exported_cell.RECORD_LOCK)
    if held is None:
        raise TemporaryError(
            _(
                "{folder}: another export is running there. Try again once it has ended",
                folder=folder,
            )
        )
    return held


def _write(folder: Path, record: ExportRecord, wanted: Sequence[Due], to: str) -> ExportRecord:
    # What it prints names folders that are there for a moment; what is wrong it raises.
    with offline(io.StringIO()), show.progress(_("export"), THINGS) as bar:
        part = bar.part(len(wanted))

        def on_cell(cell: ExportedCell) -> None:
            part.at(next(n for n, one in enumerate(wanted) if one.cell is cell))
            part.doing = cell.name

        return export_cells.write_cells(folder, record, wanted, tracker.load(to), on_cell)


def _left_out(found: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in found if one.state == LEFT_OUT]


def _report(folder: Path, found: Sequence[Outcome], step: str) -> None:
    for one in _left_out(found):
        show.say(_("{cell} left out: {why}", cell=one.cell, why=one.because))
        if one.where:
            show.say(
                _(
                    "{cell}: the export from when it was verified is still in {where}",
                    cell=one.cell,
                    where=folder / one.where,
                )
            )
    states = Counter(one.state for one in found)
    for one in found:
        if one.state == export_cells.CHANGED:
            show.say(
                _(
                    "{cell}: the result changed, its id ({id}) did not; what you already uploaded "
                    "stays as it is",
                    cell=one.cell,
                    id=one.id,
                )
            )
    if set(states) <= {LEFT_OUT}:
        return  # there is nothing to look at
    if set(states) <= {UNCHANGED, LEFT_OUT}:
        show.line(
            _(
                "nothing changed: {folder} is up to date ({n} {n:cell|cells})",
                n=states[UNCHANGED],
                folder=folder,
            )
        )
    else:
        counts = {"added": states["added"], "changed": states["changed"], "same": states[UNCHANGED]}
        show.line(
            _(
                "{folder}: {added} added, {changed} changed, {same} unchanged",
                folder=folder,
                **counts,
            )
        )
    show.say(_("nothing was uploaded. Next: {step}", step=step))
