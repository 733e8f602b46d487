"""A cell that a person has open on the board of `watch`, read piece by piece."""

from __future__ import annotations

from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.places.site import Site
from boxcar.laptop.run.log_source import LogSource
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.triage import advice
from boxcar.laptop.verbs import explain
from boxcar.laptop.verbs.logs import find, readable
from boxcar.laptop.verbs.next_step import sentence
from boxcar.laptop.view.board.pages import OpenedCell
from boxcar.shared import state, timestamp
from boxcar.shared.errors import message_of

LOG_LINES = 400
_MORE = 8  # times as many, where a person is near the first one that is here


class _LogHere:
    """What is here of a log, from some line on to its end. Lines are numbered from the first one
    that came, so that those above it have numbers below 0.
    """

    def __init__(self, source: LogSource) -> None:
        self._source, self._asked, self._rest = source, LOG_LINES, b""
        self._lines, self.first = list[str](), 0
        data, self._offset = source.end(self._asked)
        self._add(data)

    @property
    def lines(self) -> list[str]:
        """With the one that is not complete."""
        return [*self._lines, *readable([self._rest])]

    @property
    def has_more(self) -> bool:
        """Whether there are lines above; there may be no more than are kept at once."""
        return len(self._lines) >= self._asked

    def read_on(self) -> bool:
        """What was written since; whether it is the same log still."""
        data, offset = self._source.since(self._offset)
        is_same, self._offset = offset >= self._offset, offset
        self._add(data)
        return is_same

    def read_back(self) -> None:
        """More of what stands above."""
        self._asked *= _MORE
        data, offset = self._source.end(self._asked)
        known = max(0, len(data) - (offset - self._offset))  # the rest came meanwhile
        count, self._lines, self._rest = len(self._lines), [], b""
        self._add(data[:known])
        self.first -= len(self._lines) - count
        self._add(data[known:])
        self._offset = offset

    def _add(self, data: bytes) -> None:
        whole, end, self._rest = (self._rest + data).rpartition(b"\n")
        self._lines += readable([whole + end])


class CellOnBoard:
    """A cell that a person looks at."""

    def __init__(self, site: Site, name: str) -> None:
        self._site = site
        self._view: RunView | None = None
        self._log: _LogHere | None = None
        self.known = OpenedCell(name, "unknown")

    def see(self, view: RunView) -> None:
        """How it stands, and what `explain` says of it."""
        if view is self._view:
            return
        self._view, name = view, self.known.cell
        cell, found = find(view, name), explain.explain_in(self._site, view, name)
        self.known = replace(
            self.known,
            state=cell.word,
            facts=_facts(cell),
            story=[f"{_clock(one.at)}  {show.typed(one.what)}" for one in found.history],
            why=[*map(show.typed, found.facts), show.typed(sentence(found.next))],
        )

    def read(self, view: RunView, top: int | None) -> None:
        """Its log from wherever it lies now, on from where it was read."""
        log = self._log
        if log is None:
            source = self._site.log_of(find(view, self.known.cell))
            self._log = log = _LogHere(source) if source else None
        elif not log.read_on():
            self._log = None  # the cell began again, or its log went to another place
            return
        elif self.known.wants_more(top):
            log.read_back()
        lines, first, has_more = (log.lines, log.first, log.has_more) if log else ([], 0, False)
        self.known = replace(self.known, log=lines, first=first, has_more=has_more)

    def fail(self, error: Exception) -> None:
        self.known = replace(self.known, log=[show.typed(message_of(error))])


def _clock(at: str) -> str:
    """As this machine's clock shows it."""
    return timestamp.parse_utc(at).astimezone().strftime("%m-%d %H:%M:%S")


def _facts(cell: CellView) -> tuple[str, ...]:
    """Where it is, how far, and the verdict."""
    now = cell.record.state if cell.record else None
    numbers = named_numbers(cell.metrics or cell.progress | cell.guessed, best=cell.best)
    where = (cell.box, cell.queue, f"{cell.cfg} {cell.task}", cell.epochs_done, cell.speed)
    told = ["  ".join(word for word in where if word), numbers]
    if isinstance(now, state.Failed):
        told.append(f"{now.failure} {show.typed(advice.reason(now.failure, now.reason))}")
    return tuple(text for text in (*told, cell.damage, cell.doubt) if text)
