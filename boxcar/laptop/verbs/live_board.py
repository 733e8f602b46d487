"""`watch` on a terminal: who looks, who reads the log of an opened cell, and who draws, at once.

Looks come in a thread of their own, because a box may take its time and a key may not wait for it.
What verbs say meanwhile is kept off the screen, shown among what needs a person, and said again
when the screen is gone.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from rich.console import Console

from boxcar.laptop.board.box_rows import epoch_of
from boxcar.laptop.board.history import NOTHING_SEEN, seen
from boxcar.laptop.board.layout import OpenedCell
from boxcar.laptop.board.live import screen
from boxcar.laptop.board.live.terminal import Terminal
from boxcar.laptop.board.snapshot import Snapshot, snapshot
from boxcar.laptop.common import show
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.triage import advice
from boxcar.laptop.verbs import explain, logs
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import board_facts
from boxcar.shared import state
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError, message_of

LOG_LINES = 400
LOG_EVERY_S = 2.0
_NOTES_KEPT = 20
# A box that does not answer must not keep a person who leaves.
_FAREWELL_S = 2.0

# Given a test for the end, the looks one after the other.
Looks = Callable[[Callable[[float], bool]], Iterable[RunView]]


class LiveBoard:
    """`view` is the last look, None before the first one; `looked_s` how long ago it was."""

    def __init__(self, site: Site, looks: Looks) -> None:
        self._site, self._looks = site, looks
        self.view: RunView | None = None
        self.looked_s = 0.0

    def show(self) -> None:
        """Until the looks end or the person leaves. Raises what a look raised, KeyboardInterrupt,
        SystemExit.
        """
        console, said = Console(file=sys.stdout, highlight=False), _Said()
        with _off_the_screen(said), Terminal(sys.stdin.fileno()) as terminal:
            feed = _Feed(self._site, self._looks, terminal.wake, said)
            try:
                screen.show_board(console, terminal, feed, show.typed(Sentence("how_far.asking")))
            finally:
                feed.close()
                self.view, self.looked_s = feed.view, feed.looked_s
        if feed.error:
            raise feed.error


class _Said(io.TextIOBase):
    """What was said to stdout and stderr meanwhile, each line once."""

    def __init__(self) -> None:
        self._rest, self.lines, self._encoding = "", dict[str, None](), sys.stdout.encoding
        self._lock, self._is_stopped = threading.Lock(), False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the terminal, which is asked what it can show."""
        return self._encoding

    def stop(self) -> None:
        """Take nothing more."""
        self._is_stopped = True

    def write(self, text: str) -> int:
        with self._lock:
            if self._is_stopped:
                return len(text)
            *whole, self._rest = f"{self._rest}{text}".split("\n")
            for line in filter(str.strip, whole):
                self.lines[line] = self.lines.pop(line, None)
            while len(self.lines) > _NOTES_KEPT:
                del self.lines[next(iter(self.lines))]
        return len(text)


@contextmanager
def _off_the_screen(said: _Said) -> Iterator[None]:
    try:
        with redirect_stdout(said), redirect_stderr(said):
            yield
    finally:
        for line in said.lines:
            print(line, file=sys.stderr)


class _Feed:
    """See screen.Feed."""

    def __init__(self, site: Site, looks: Looks, wake: Callable[[], None], said: _Said) -> None:
        self._site, self._looks, self._wake, self._said = site, looks, wake, said
        self._latest: tuple[Snapshot, float] | None = None
        self._end, self._ended = threading.Event(), threading.Event()
        self._logs: dict[str, tuple[str, ...]] = {}
        self._wanted, self._asked, self._is_cut = "", threading.Event(), False
        self.view: RunView | None = None
        self.error: Exception | None = None
        for work in (self._look, self._read_logs):
            threading.Thread(target=work, daemon=True).start()

    def latest(self) -> tuple[Snapshot, float] | None:
        return self._latest

    @property
    def looked_s(self) -> float:
        return time.monotonic() - self._latest[1] if self._latest else 0.0

    def is_over(self) -> bool:
        return self._ended.is_set()

    def opened(self, cell: str) -> OpenedCell:
        self._wanted = cell
        self._asked.set()
        found = (
            next((one for one in self.view.cells if one.name == cell), None) if self.view else None
        )
        if found is None or self.view is None:
            return OpenedCell(cell, "unknown")
        history = tuple(
            f"{moment.at}  {show.typed(moment.what)}"
            for moment in explain.history_of_cell(self.view, cell)
        )
        return OpenedCell(cell, found.word, _facts(found), history, self._logs.get(cell))

    def close(self) -> None:
        """End the looks; what is under way on a box is not waited for long."""
        self._end.set()
        self._asked.set()
        if not self._ended.wait(_FAREWELL_S):
            self._is_cut = True
            self._said.stop()
            self._site.boxes.close()  # Python waits for each thread, and a thread for its box
            self._ended.wait(_FAREWELL_S)

    def _look(self) -> None:
        history = NOTHING_SEEN
        try:
            for view in self._looks(self._end.wait):
                if self._is_cut:
                    return  # no box is silent because we hung up
                history = seen(history, view)
                notes = tuple(self._said.lines)
                step = next_step(view, self._site)
                known = board_facts(
                    self._site, view, step, at_work=Sentence("board.at_work"), notes=notes
                )
                self.view = view
                self._latest = snapshot(view, history, known), time.monotonic()
                self._wake()
        except Exception as error:  # raised again by who waits for the looks
            self.error = error
        finally:
            self._ended.set()
            self._wake()

    def _read_logs(self) -> None:
        while not self._end.is_set():
            self._asked.wait()
            self._asked.clear()
            if self.view is None or self._end.is_set():
                continue
            if cell := next((one for one in self.view.cells if one.name == self._wanted), None):
                self._logs[cell.name] = self._log_of(cell)
                self._wake()
            self._end.wait(LOG_EVERY_S)

    def _log_of(self, cell: CellView) -> tuple[str, ...]:
        try:
            source = self._site.log_of(cell)
            return tuple(logs.readable([source.end(LOG_LINES)[0]])) if source else ()
        except (BoxcarError, OSError) as error:
            return (show.typed(message_of(error)),)


def _facts(cell: CellView) -> tuple[str, ...]:
    """Where it is, how far, and the verdict."""
    now = cell.record.state if cell.record else None
    numbers = named_numbers(cell.metrics or cell.progress, best=cell.best)
    where = (cell.box, cell.queue, f"{cell.cfg} {cell.task}", epoch_of(cell))
    told = ["  ".join(word for word in where if word), numbers]
    if isinstance(now, state.Failed):
        told.append(f"{now.failure} {show.typed(advice.reason(now.failure, now.reason))}")
    return tuple(text for text in (*told, cell.damage, cell.doubt) if text)
