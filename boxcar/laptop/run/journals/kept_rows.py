"""What a look keeps of a run as rows for a file, and back: journals that were followed, and what
was asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from boxcar.laptop.common.kept import by_column
from boxcar.laptop.common.kept.late import Late
from boxcar.laptop.run.roster import Asked, Line, Roster, RosterCell
from boxcar.shared import state
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.files import check, codec
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass
from boxcar.shared.state import CellRecord, Session, State

# Raised by whoever changes what a replay makes of an event.
_FORMAT = 3
_KINDS: tuple[Any, ...] = (
    *(state.Queued, state.Claimed, state.Running, state.Waiting, state.Preempted),
    *(state.Failed, state.Succeeded, state.Synced, state.Verified),
)


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


_OF_A_KIND = [_names(kind) for kind in _KINDS]
_OF_A_RECORD = _names(CellRecord)[1:]
_OF_A_CELL = ("name", "queue", "task", "cfg", "epochs", "own", "overrides", "index")
# Whose records these are: others may have other fields.
SHAPE = [_FORMAT, _OF_A_KIND, *map(_names, (CellRecord, Session, RosterCell, Event))]


@dataclass(frozen=True)
class Known:
    """What the first bytes of a journal come to."""

    size_bytes: int
    sha256: str
    checks: tuple[str, ...]
    state: State
    begun: Sequence[RosterCell]

    @property
    def end(self) -> JournalEnd:
        return JournalEnd(self.state.last_seq, self.checks[-1] if self.checks else check.OF_NOTHING)


def of_journal(known: Known) -> list[Any]:
    now = known.state
    return [
        *(known.size_bytes, known.sha256, known.checks, now.last_seq),
        _values(now.session, _names(Session)) if now.session else None,
        [_values(event, _names(Event)) for event in now.warnings],
        [*now.cells],
        [_records(now.cells, kind, names) for kind, names in zip(_KINDS, _OF_A_KIND, strict=True)],
        json.dumps(_of_cells(known.begun)),  # a text, which nobody reads who does not ask
    ]


def journal(row: list[Any]) -> Known:
    size_bytes, sha256, checks, seq, session, warnings, names, records, begun = row
    made = dict(one for at, kept in enumerate(records) for one in _made(at, kept))
    found = State(
        {name: made[name] for name in names},
        Session(*session) if session else None,
        tuple(Event(*one) for one in warnings),
        seq,
    )
    return Known(size_bytes, sha256, tuple(checks), found, Late(lambda: _cells(json.loads(begun))))


def _records(
    cells: Mapping[str, CellRecord], kind: Any, names: tuple[str, ...]
) -> by_column.Columns:
    """Those whose state is of one kind, so that all have the same fields."""
    some = {name: record for name, record in cells.items() if type(record.state) is kind}
    of_states = by_column.fields((record.state for record in some.values()), names)
    return by_column.of([[*some], *of_states, *by_column.fields(some.values(), _OF_A_RECORD)])


def _made(at: int, kept: by_column.Columns) -> Iterator[tuple[str, CellRecord]]:
    if not kept[0]:
        return iter(())
    names, *fields = by_column.columns(kept)
    end = len(_OF_A_KIND[at])
    states = map(_KINDS[at], *fields[:end]) if end else itertools.repeat(_KINDS[at]())
    return zip(names, map(CellRecord, states, *fields[end:]), strict=False)


def of_asked(asked: Asked) -> list[Any]:
    found, lineless = asked.roster, [cell.name for cell in asked.lineless]
    return [_of_cells(found.cells), found.notes, lineless, sorted(asked.unlike)]


def asked(row: list[Any]) -> Asked:
    cells, notes, lineless, unlike = row
    found, without = Roster(tuple(_cells(cells)), notes=tuple(notes)), frozenset(lineless)
    open_cells = (cell for cell in found.cells if cell.name in without) if without else ()
    return Asked(found, tuple(open_cells), frozenset(unlike))


def _of_cells(cells: Iterable[RosterCell]) -> by_column.Columns:
    """But for what became of each line, which is not known by bytes alone."""
    *line, own, overrides, index = by_column.fields(cells, _OF_A_CELL)
    owns = [None if one is NOTHING_OWN else codec.encode(one) for one in own]
    return by_column.of([*line, owns, overrides, index])


def _cells(kept: by_column.Columns) -> list[RosterCell]:
    if not kept[0]:
        return []
    *line, own, overrides, index = by_column.columns(kept)
    owns = (NOTHING_OWN if one is None else codec.decode(Own, one, "own") for one in own)
    is_there = itertools.repeat(Line.IS_THERE)
    return [*map(RosterCell, *line, owns, overrides, is_there, index)]


def _values(record: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(record, name) for name in names]
