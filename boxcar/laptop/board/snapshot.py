"""All that the board shows of one look at a run, decided before a line is drawn. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from boxcar.laptop.board import cell_rows, money, needs_you
from boxcar.laptop.board.box_rows import BoxRow, box_rows
from boxcar.laptop.board.cell_rows import CellRow, count_word
from boxcar.laptop.board.history import History
from boxcar.laptop.board.lines.glyphs import UNICODE, Glyphs
from boxcar.laptop.board.needs_you import Need, Quiet
from boxcar.laptop.run import time_left
from boxcar.laptop.run.view import BROKEN_OFF, RunView
from boxcar.shared import timestamp
from boxcar.shared.record import dataclass

# In the order in which they are counted at the top.
COUNTED = (
    *("verified", "running", BROKEN_OFF, "settling", "retrying", "failed", "damaged", "preempted"),
    *("unknown", "queued", "dropped"),
)


@dataclass(frozen=True)
class Facts:
    """What the board knows besides the view. `next` is the command to type, spelled, or '', and
    `because` why; `see_all` is the command that prints all rows. `prices` are by box.
    """

    profile: str
    next: str
    because: str
    see_all: str = ""
    metrics: tuple[str, ...] = ()
    prices: tuple[tuple[str, str], ...] = ()
    quiet: Quiet = Quiet()
    language: str = "en"
    glyphs: Glyphs = UNICODE


@dataclass(frozen=True)
class Snapshot:
    """`looked_s` is how long ago the look was. `left_s` is None where nobody can know."""

    run: str
    clock: str
    facts: Facts
    counts: tuple[tuple[str, int], ...]
    left_s: float | None
    money: str
    boxes: tuple[BoxRow, ...]
    needs: tuple[Need, ...]
    short_needs: tuple[Need, ...]  # with cells that failed alike in one row
    failed: tuple[CellRow, ...]
    under_way: tuple[CellRow, ...]
    done: Sequence[CellRow]
    queued: Sequence[CellRow]
    looked_s: float = 0.0

    @property
    def cells(self) -> int:
        return sum(number for _, number in self.counts)


def snapshot(view: RunView, history: History, facts: Facts) -> Snapshot:
    cell_left_s = time_left.cells_left_s(view)
    queue_left_s = time_left.queues_left_s(view, cell_left_s)
    needs = needs_you.needs(view, history, facts.quiet, facts.language)
    cost = money.money_of_run(dict(facts.prices), view, queue_left_s)
    return Snapshot(
        run=view.run,
        clock=_clock(view.at),
        facts=facts,
        counts=_counts(view),
        left_s=_longest(queue_left_s.values()),
        money=money.money_text(cost, facts.language) if cost else "",
        boxes=box_rows(view, history, cell_left_s),
        needs=needs,
        short_needs=needs_you.alike(needs_you.by_kind(needs), facts.language),
        failed=cell_rows.failed(view),
        under_way=cell_rows.under_way(view, facts.metrics),
        done=cell_rows.ended(view, facts.metrics),
        queued=cell_rows.to_come(view),
    )


def _counts(view: RunView) -> tuple[tuple[str, int], ...]:
    found = Counter[str]()
    for one, cells in view.by_word.items():
        found[count_word(one)] += len(cells)
    return tuple((word, found[word]) for word in COUNTED if found[word])


def _longest(left_s: Iterable[float | None]) -> float | None:
    """Until the last queue ends: they run beside each other."""
    known = list(left_s)
    if any(one is None for one in known):
        return None
    return max((one for one in known if one is not None), default=0.0)


def _clock(at: str) -> str:
    """The time of the look as the laptop's own clock shows it."""
    moment: datetime = timestamp.parse_utc(at)
    return moment.astimezone().strftime("%H:%M")
