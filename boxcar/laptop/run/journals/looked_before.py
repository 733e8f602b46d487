"""What earlier looks have worked out of files that have not changed since: for who shows a run.

A journal is known by its bytes: what it comes to is taken from here only where it begins with
exactly those that were followed then, and what was appended since is followed from there. A
manifest is known by what the disk says of it. It is a cache: lost, damaged or of another Boxcar it
is worked out anew. `status` and `watch` have it; whoever decides something (the gate, `verify`,
`pull`, the agents) reads the files themselves.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path
from typing import Any

from boxcar.laptop.common import cache_file
from boxcar.laptop.run.journals import followed
from boxcar.laptop.run.journals.followed import Followed
from boxcar.laptop.run.journals.late_events import LateChecks, LateEvents
from boxcar.laptop.run.roster import RosterCell
from boxcar.shared import state
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.disk import digest, stamp
from boxcar.shared.files import codec, journal, journal_chain, manifest
from boxcar.shared.files.journal import JournalEnd, Reading
from boxcar.shared.files.journal_chain import LINE_FEED, Event
from boxcar.shared.record import dataclass
from boxcar.shared.state import CellRecord, Session, State

# Raised by whoever changes what a replay makes of an event.
_FORMAT = 1
# Below this a journal is followed as fast as it is found here.
WORTH_EVENTS = 1000
# It is written anew once this part of a journal was followed since.
_SHARE = 10
_KINDS: tuple[Any, ...] = (
    *(state.Queued, state.Claimed, state.Running, state.Waiting, state.Preempted),
    *(state.Failed, state.Succeeded, state.Synced, state.Verified),
)


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


_OF_A_KIND = [_names(kind) for kind in _KINDS]
_OF_A_RECORD = _names(CellRecord)[1:]
# Whose records these are: others may have other fields.
# How many of the newest are known by their check: a heartbeat may be that far behind.
_CHECKS_KEPT = 100
_SHAPE = [_FORMAT, _OF_A_KIND, *map(_names, (CellRecord, Session, RosterCell, Event))]


@dataclass(frozen=True)
class _Known:
    """What the first bytes of a journal come to."""

    size_bytes: int
    sha256: str
    checks: tuple[str, ...]
    state: State
    begun: dict[str, RosterCell]

    @property
    def end(self) -> JournalEnd:
        return JournalEnd(self.state.last_seq, self.checks[-1])


class LookedBefore:
    """Of one run; `path` is read at once, and is gone where it is of no use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journals: dict[str, _Known] = {}
        # By cell: what the disk says of its manifest, and its digest.
        self._manifests: dict[str, str] = {}
        self._is_new, self._stamped = False, 0
        cache_file.read(path, _SHAPE, self._take)

    def follow(self, path: Path) -> Followed:
        """As `followed.of_path`. Raises DamagedError, OSError."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return followed.of_path(path)
        known = self._journals.get(path.stem)
        if known is None or digest.of_bytes(data[: known.size_bytes]) != known.sha256:
            found = followed.of_path(path)
            self._remember(path.stem, data, found, found.reading.end.seq)
            return found
        rest = journal.parse(data[known.size_bytes :], str(path), known.end)
        is_whole = not rest.torn and rest.after == LINE_FEED
        return self._followed_on(path, data, known, rest) if is_whole else followed.of_path(path)

    def _followed_on(self, path: Path, data: bytes, known: _Known, rest: Reading) -> Followed:
        read = functools.cache(lambda: journal.parse(data, str(path)))
        count = known.end.seq + len(rest.events)
        found = Followed(
            Reading(
                LateEvents(data, count, lambda: read().events),
                checks=LateChecks((*known.checks, *rest.checks), count, lambda: read().checks),
            ),
            state.replay(rest.events, known.state),
            followed.cells(path.stem, rest.events, known.begun) if rest.events else known.begun,
        )
        if rest.events:
            self._remember(path.stem, data, found, len(rest.events))
        return found

    def _remember(self, queue: str, data: bytes, found: Followed, new: int) -> None:
        end, is_whole = found.reading.end, data.endswith(LINE_FEED)
        last = data[data.rfind(LINE_FEED, 0, -1) + 1 :]
        if end.seq < WORTH_EVENTS or not is_whole or not journal_chain.has_check(last):
            return
        sha256 = digest.of_bytes(data)
        checks = tuple(found.reading.checks[-_CHECKS_KEPT:])
        self._journals[queue] = _Known(len(data), sha256, checks, found.state, found.begun)
        self._is_new = self._is_new or new * _SHARE >= end.seq

    def has_manifest(self, path: str, cell: str, sha256: str) -> bool:
        """Whether the disk says that the cell's manifest there is still the one of this digest."""
        known = self._manifests.get(cell)
        if known is None:
            return False
        try:
            seen = stamp.of(path)
        except OSError:
            return False
        return known == f"{' '.join(map(str, seen))} {sha256}"

    def sha256(self, path: Path) -> str:
        """The digest of a cell's manifest. Raises OSError."""
        began_ns, seen = time.time_ns(), stamp.of(path)
        spelled, cell = " ".join(map(str, seen)), path.parent.name
        before, _, sha256 = self._manifests.get(cell, "").rpartition(" ")
        if before == spelled:
            return sha256
        # The stamp is from before the bytes were read: who writes meanwhile makes another one.
        sha256 = manifest.sha256(path)
        if stamp.is_old(seen, began_ns):
            self._manifests[cell] = f"{spelled} {sha256}"
            self._stamped += 1
        return sha256

    def write(self) -> None:
        """For the next look, where that is worth it. A disk that is full keeps nobody from one."""
        is_worth = self._stamped >= WORTH_EVENTS and self._stamped * _SHARE >= len(self._manifests)
        if not (self._is_new or is_worth):
            return
        journals = {queue: _spelled(known) for queue, known in self._journals.items()}
        if cache_file.write(self._path, _SHAPE, [journals, self._manifests]):
            self._is_new, self._stamped = False, 0

    def _take(self, kept: Any) -> None:
        journals, manifests = kept
        self._journals = {queue: _known(queue, row) for queue, row in journals.items()}
        self._manifests = manifests


# --- rows: a field's name in each of a hundred thousand would take longer than all the rest


def _spelled(known: _Known) -> list[Any]:
    now = known.state
    return [
        *(known.size_bytes, known.sha256, known.checks, now.last_seq),
        _values(now.session, _names(Session)) if now.session else None,
        [_values(event, _names(Event)) for event in now.warnings],
        {name: _of_record(record) for name, record in now.cells.items()},
        {name: _of_cell(cell) for name, cell in known.begun.items()},
    ]


def _known(queue: str, row: list[Any]) -> _Known:
    size_bytes, sha256, checks, seq, session, warnings, cells, begun = row
    found = State(
        {name: _record(one) for name, one in cells.items()},
        Session(*session) if session else None,
        tuple(Event(*one) for one in warnings),
        seq,
    )
    told = {name: _cell(name, queue, one) for name, one in begun.items()}
    return _Known(size_bytes, sha256, tuple(checks), found, told)


def _of_record(record: CellRecord) -> list[Any]:
    kind = _KINDS.index(type(record.state))
    return [kind, _values(record.state, _OF_A_KIND[kind]), *_values(record, _OF_A_RECORD)]


def _record(row: list[Any]) -> CellRecord:
    kind, values, *rest = row
    now = _KINDS[kind](*[tuple(one) if type(one) is list else one for one in values])
    return CellRecord(now, *rest)


def _of_cell(cell: RosterCell) -> list[Any]:
    own = codec.encode(cell.own) if cell.own != NOTHING_OWN else None
    return [cell.task, cell.cfg, cell.epochs, own, cell.overrides]


def _cell(name: str, queue: str, row: list[Any]) -> RosterCell:
    task, cfg, epochs, own, overrides = row
    said = NOTHING_OWN if own is None else codec.decode(Own, own, name)
    return RosterCell(
        name=name,
        queue=queue,
        task=task,
        cfg=cfg,
        epochs=epochs,
        own=said,
        overrides=tuple(overrides),
    )


def _values(record: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(record, name) for name in names]
