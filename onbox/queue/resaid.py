"""A cell whose line asks for something else than when it was begun. Decides and says; pure.

Nothing of one saying is ever gone on with under another. What failed for good was mended, as a rule
its config: it begins anew. What was broken off may be resumed by somebody: it is left as it is.
"""

from __future__ import annotations

import enum
from dataclasses import replace

from boxcar.shared.cell import cell_line, said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord, Failed

FAILURE = "SAID-OTHERWISE"


class Standing(enum.Enum):
    AS_BEGUN = "as it was begun"
    ANEW = "to be begun anew"
    OTHERWISE = "not to be run under this name"


def standing(
    now: str | None, claim: Claim | None, record: CellRecord, started: Event | None
) -> Standing:
    """`now` is what the line asks for; `record` is the cell's in this queue's journal, `started`
    its last start there, which speaks where an older claim says nothing.
    """
    before = claim.saying if claim else None
    if before is None and started:
        before = started.data.get("saying")
    if claim is None or not said.sayings_differ(now, before):
        return Standing.AS_BEGUN
    if isinstance(record.state, Failed):
        is_refused = record.state.failure == FAILURE
        return Standing.OTHERWISE if is_refused else Standing.ANEW
    was_begun = bool(record.attempts or claim.moved_from)
    return Standing.OTHERWISE if was_begun else Standing.ANEW


def sentence(cell: CellLine, started: Event | None) -> str:
    """What it was begun as."""
    if started is None:
        return _("{cell} was begun as another line", cell=cell.name)
    before = cell_line.begun_line(started)
    alike = replace(before, epochs=before.epochs if cell.epochs else None)
    is_config = cell_line.line_of(alike) == cell_line.line_of(cell)
    if is_config:
        return _("{cell} was begun with another text of {cfg}", cell=cell.name, cfg=cell.cfg)
    line = cell_line.quoted_line(before)
    return _("{cell} was begun as {line}", cell=cell.name, line=line)
