"""What `verify` has proven of a cell that its box called failed, written where agents read it."""

from __future__ import annotations

from collections.abc import Iterable

from boxcar import __version__
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.receipt import Accepted, CellVerdict
from boxcar.shared.state import Failed, Verified
from boxcar.shared.wire import run_asks


def is_due(cell: CellView, verdict: CellVerdict) -> bool:
    """Whether the cell is proven here, and its box is still to hear of it. Pure."""
    now = cell.record.state if cell.record else None
    is_refused = isinstance(now, Failed) or (isinstance(now, Verified) and now.by is not None)
    is_proven = verdict.is_settled and verdict.because is None and not verdict.is_dropped
    return is_proven and is_refused and cell.accepted is None


def document(run: OpenRun, verdict: CellVerdict, at: str) -> Accepted:
    """Of a verdict that is due. `at` is when it was made."""
    assert verdict.manifest_sha256
    return Accepted(
        run=run.plan.run,
        cell=verdict.cell,
        manifest_sha256=verdict.manifest_sha256,
        at=at,
        unpickled=tuple(verdict.unpickled),
        boxcar=__version__,
    )


def write_acceptance(run: OpenRun, cell: CellView, made: Accepted) -> None:
    """Have it written on the durable tier that holds the result. Raises BoxcarError, OSError."""
    run.ask(_box_of(run, cell), run_asks.Accept(made))


def _box_of(run: OpenRun, cell: CellView) -> str:
    if run.plan.durable_scope == EACH_BOX:
        return cell.box
    return run.reach_tiers([cell.box, *_others(run, cell.box)])[0]


def _others(run: OpenRun, box: str) -> Iterable[str]:
    return (known.name for known in run.plan.boxes if known.name != box)
