"""A cell as it was begun: the line in its event `cell.started`, whatever the queue says by now.

Of a cell that ran on a lost box, whose result was lent to this one, `cell.verified` says it.
"""

from __future__ import annotations

from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.files import codec
from boxcar.shared.files.journal_chain import Event

TYPES = ("cell.started", "cell.verified")


def tells_begun(event: Event) -> bool:
    """Whether the event says how its cell was begun."""
    is_lent = event.type == "cell.verified" and "cfg" in event.data
    return event.type == "cell.started" or is_lent


def begun_line(started: Event) -> CellLine:
    """Raises KeyError, DamagedError for an event that says too little."""
    data = started.data
    own = data.get("own")
    return CellLine(
        index=-1,
        number=0,
        name=str(started.cell),
        cfg=data["cfg"],
        task=data["task"],
        epochs=data["epochs"],
        own=codec.decode(Own, own, "cell.started") if own is not None else NOTHING_OWN,
        overrides=tuple(data.get("overrides") or ()),
    )


def begun_fields(line: CellLine) -> dict[str, object]:
    """The fields of the event, but for those that a release decides."""
    return {
        "task": line.task,
        "own": codec.encode(line.own) if line.own != NOTHING_OWN else None,
        "overrides": list(line.overrides) or None,
    }
