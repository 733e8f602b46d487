"""The cells of a run for its report: from its receipt, and what lies beside it in the results.

No box is asked, so a report can be made long after the teardown. Fail closed: a number is taken
only of a cell that the receipt calls verified, whose manifest here is the one that the receipt
names.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.project.project import Project
from boxcar.laptop.run.rentals import prices_of_boxes
from boxcar.laptop.view.report import run_report, settings
from boxcar.laptop.view.report.cell_series import Pulled
from boxcar.laptop.view.report.groups import ReportCell
from boxcar.laptop.view.report.run_report import Asked, Report
from boxcar.shared import names, paths, state
from boxcar.shared.errors import BoxcarError, Command, DamagedError, InputError, Message, some
from boxcar.shared.files import journal, manifest, receipt
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord

STARTED = "cell.started"
# More ranks mean a larger batch in most scripts, so it is one of the things that a cell is told.
RANKS = "ranks"
_RUNS_NAMED = 12


@dataclass(frozen=True)
class Told:
    """What a cell was told: of its manifest, its last start, or the plan."""

    cfg: str = ""
    task: str = ""
    epochs: int | None = None
    overrides: tuple[str, ...] = ()
    config: str | None = None
    ranks: int = 1
    box: str = ""
    price: str = ""
    share: float = 1.0


def read_receipt(results: ResultPaths) -> RunReceipt:
    """Raises InputError where nothing was verified yet, and DamagedError."""
    try:
        return receipt.read_run(results.receipt)
    except FileNotFoundError:
        what = _(
            "{run}: nothing is verified yet, so there are no numbers to report", run=results.run
        )
        raise InputError(Message(what, Command("verify"))) from None


def report_of(project: Project, asked: Asked) -> Report:
    """Of all runs that were asked for. Raises InputError where they cannot stand in one table."""
    receipts = {run: read_receipt(results_of(project, run)) for run in asked.runs}
    named, prices = run_report.shared_definitions(receipts), prices_of_boxes(project)
    cells = [
        cell
        for run, found in receipts.items()
        for cell in cells_of(results_of(project, run), found, _planned(project, run), prices)
    ]
    digests = {run: found.digest for run, found in receipts.items()}
    return run_report.report_of_cells(asked, digests, cells, named)


def results_of(project: Project, run: str) -> ResultPaths:
    """Where a run's results lie here. Raises InputError for a run that has none here."""
    folder = project.results.results_dir
    if run == project.plan.run or (names.RUN.fullmatch(run) and (folder / run).is_dir()):
        return ResultPaths(folder, run)
    there = sorted(path.parent.name for path in folder.glob(f"*/{paths.RECEIPT}"))
    source = Path(run).resolve() if os.sep in run else Path("/OTHER/results/NAME")
    raise InputError(
        _(
            "{run!r} is not a run whose results are in {folder}; there are: {names}. For a run of "
            "another project, link its results: {line}, then give --run {name}",
            run=run,
            folder=folder,
            names=some(there, _RUNS_NAMED) or _("none"),
            line=shlex.join(["ln", "-s", str(source), str(folder / source.name)]),
            name=source.name,
        )
    )


def metrics_of(project: Project, runs: Iterable[str]) -> dict[str, tuple[Metric, ...]]:
    """What the jobs of the runs have named, by run. Raises DamagedError."""
    receipts = {run: read_receipt(results_of(project, run)) for run in runs}
    return {run: run_report.definitions_of_receipt(found) for run, found in receipts.items()}


def pulled(project: Project, cell: ReportCell, metrics: Sequence[Metric]) -> Pulled:
    """What its series are read from. Raises DamagedError, OSError."""
    results = results_of(project, cell.run)
    made = manifest.read_manifest(results.manifest(cell.name))
    return Pulled(results.cell(cell.name), made, tuple(metrics))


def _planned(project: Project, run: str) -> dict[str, Told]:
    """What the local files say, for cells that never ran."""
    if run != project.plan.run:
        return {}
    return {
        cell.name: Told(
            cell.cfg, cell.task, cell.epochs, cell.overrides, _config(project, cell.cfg)
        )
        for cell in project.plan.cells
    }


def _config(project: Project, cfg: str) -> str | None:
    """Its text here; None where it is gone, or is no text."""
    path = project.root / project.job.code / cfg
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return None


def cells_of(
    results: ResultPaths,
    found: RunReceipt,
    planned: Mapping[str, Told],
    prices: Mapping[str, str],
) -> list[ReportCell]:
    """Those of the receipt, in its order, without the dropped ones. `planned`: what the local files
    say of cells that never ran; `prices`: those of the boxes.
    """
    records, starts = _of_journals(results)
    published = {v.cell: _manifest(results, v) for v in found.cells}
    configs = {m.cfg: m.config for m in published.values() if m and m.config is not None}
    return [
        _cell(found.run, verdict, made, told, records.get(verdict.cell, CellRecord()))
        for verdict in found.cells
        if not verdict.is_dropped
        for made in [published[verdict.cell]]
        for told in [_priced(_told(verdict.cell, made, starts, planned, configs), prices)]
    ]


def _cell(
    run: str, verdict: CellVerdict, made: Manifest | None, told: Told, record: CellRecord
) -> ReportCell:
    lack = _lack(verdict, made, record)
    values = settings.of_cell(told.config, told.cfg, told.task, told.epochs, told.overrides)
    values |= {RANKS: told.ranks}
    return ReportCell(
        run=run,
        name=verdict.cell,
        task=told.task,
        settings=settings.spelled(values),
        numbers={} if lack else result_files.of_result(verdict.metrics, verdict.findings),
        notes=measure.notes(verdict.metrics),
        lack=lack,
        seconds=record.seconds,
        ranks=told.ranks,
        attempts=record.attempts,
        price=told.price,
        share=told.share,
        doubt=(made.doubt or "") if made else "",
        trained_on=made.trained_on if made else None,
        values=values,
    )


def _lack(verdict: CellVerdict, made: Manifest | None, record: CellRecord) -> str:
    """Why a cell has no number that may be shown; '' where it is proven."""
    if verdict.because is not None:
        return _("was abandoned: {because}", because=verdict.because)
    if isinstance(record.state, state.Failed) and not verdict.is_settled:
        return _("failed ({failure})", failure=record.state.failure)
    if not verdict.is_settled:
        return _("is not verified")
    return "" if made else _("differs from the receipt: verify again")


def _manifest(results: ResultPaths, verdict: CellVerdict) -> Manifest | None:
    """The one that the receipt speaks of; None where it is not here, or is another."""
    path = results.manifest(verdict.cell)
    with contextlib.suppress(OSError, DamagedError):
        if verdict.manifest_sha256 and manifest.sha256(path) == verdict.manifest_sha256:
            return manifest.read_manifest(path)
    return None


def _told(
    name: str,
    made: Manifest | None,
    starts: Mapping[str, Event],
    planned: Mapping[str, Told],
    configs: Mapping[str, str | None],
) -> Told:
    start = starts[name].data if name in starts else {}
    ranks = _whole(start.get("nproc")) or 1
    if made:
        words = made.overrides
        told = Told(made.cfg, made.task, made.epochs, words, made.config, ranks, made.box)
        return _shared(told, start)
    if not start:
        return planned.get(name, Told())
    cfg = str(start.get("cfg", ""))
    known = configs.get(cfg) or planned.get(name, Told()).config
    words = tuple(map(str, start.get("overrides", ())))
    epochs = _whole(start.get("epochs"))
    told = Told(
        cfg, str(start.get("task", "")), epochs, words, known, ranks, str(start.get("box", ""))
    )
    return _shared(told, start)


def _priced(told: Told, prices: Mapping[str, str]) -> Told:
    return replace(told, price=prices.get(told.box, ""))


def _shared(told: Told, start: Mapping[str, Any]) -> Told:
    share = start.get("share", 1.0)
    return replace(told, share=share) if isinstance(share, float) and 0 < share <= 1 else told


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _of_journals(results: ResultPaths) -> tuple[dict[str, CellRecord], dict[str, Event]]:
    """What became of each cell, and its last start, by the journals that were pulled."""
    records: dict[str, CellRecord] = {}
    starts: dict[str, Event] = {}
    for events in _events(results):
        with contextlib.suppress(BoxcarError):
            for name, record in state.replay(events).cells.items():
                records[name] = _later(records.get(name), record)
        starts |= {event.cell: event for event in events if event.type == STARTED and event.cell}
    return records, starts


def _later(one: CellRecord | None, other: CellRecord) -> CellRecord:
    """Of a cell that two queues had, the one that has a result, else that got further."""
    return other if one is None or _rank(other) >= _rank(one) else one


def _rank(record: CellRecord) -> tuple[bool, int]:
    return isinstance(record.state, state.Synced | state.Verified), record.attempts


def _events(results: ResultPaths) -> Iterator[Sequence[Event]]:
    for path in sorted(results.journals.glob("*.jsonl")):
        with contextlib.suppress(OSError, BoxcarError):
            yield journal.read_journal(path).events
