"""Which results this box knows nothing of: it may have been rented anew under its name."""

from __future__ import annotations

from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import journal
from boxcar.shared.paths import DurablePaths
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.result import published


def answer(question: run_asks.KnowResults, run: RunOnBox) -> run_asks.ResultsKnown:
    """Raises DamagedError for a journal that cannot be read."""
    tried = tried_cells(run.tier, question.queue)
    has_result = {cell for cell in question.cells if run.tier.manifest(cell).exists()}
    return run_asks.ResultsKnown(
        unknown=tuple(cell for cell in question.cells if cell not in has_result | tried),
        bare=tuple(cell for cell in question.cells if cell in has_result and _is_bare(run, cell)),
        verified=tuple(cell for cell in question.cells if published.is_verified(run.tier, cell)),
    )


def _is_bare(run: RunOnBox, cell: str) -> bool:
    try:
        return not published.has_files(run.tier, cell)
    except DamagedError:
        return False  # to be repaired, and no reason to send anything


def tried_cells(tier: DurablePaths, queue: str) -> set[str]:
    """Those that the queue has attempted here: what this box knows of them is newer."""
    records = state.replay(journal.read_journal(tier.journal(queue)).events).cells
    return {cell for cell, record in records.items() if record.attempts > 0}
