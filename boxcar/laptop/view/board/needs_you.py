"""What needs a person, the worst first: boxes, failed cells, idle GPUs, and what happens by itself.

Pure. Each is one row; which of them have room is the layout's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from boxcar.laptop.common import units
from boxcar.laptop.run.condition import heartbeat_age_s
from boxcar.laptop.run.news import warnings
from boxcar.laptop.run.view import CellView, QueueView, RunView, blocked_of_run
from boxcar.laptop.triage import advice
from boxcar.laptop.view.board.box_rows import epoch_of
from boxcar.laptop.view.board.history import History, gpu_of, idle_s
from boxcar.laptop.view.board.terminal_lines import (
    BAD,
    DIM,
    WARN,
    Column,
    Glyphs,
    Line,
    Span,
    span,
    table,
    word,
)
from boxcar.shared import state
from boxcar.shared.catalogue.sentence import in_language
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news.text import said_warning
from boxcar.shared.record import dataclass

# Conditions of a queue, the worst first. Those of the second group may end by themselves.
_BROKEN = ("damaged", "agent dead", "trainer dead", "no room")
_IN_DOUBT = (
    "held",
    "unknown",
    "unreachable",
    "stalled agent",
    "step frozen",
    "incomplete",
    "stopped",
)
# More cells that failed alike stand in one row.
ALIKE_SHOWN = 3


@dataclass(frozen=True)
class Need:
    """`cell` is what can be opened for it. `look` is the one of its sign, which is `is_broken` or
    not.
    """

    who: str
    text: str
    where: str = ""
    epoch: str = ""
    cell: str | None = None
    is_broken: bool = False
    is_quiet: bool = False  # worth knowing, and nothing is wrong yet


@dataclass(frozen=True)
class Quiet:
    """What the run's site says: its danger clocks, and what is switched off."""

    clocks: tuple[str, ...] = ()
    clock_command: str = ""
    notes: tuple[str, ...] = ()


def needs(view: RunView, history: History, quiet: Quiet, language: str) -> tuple[Need, ...]:
    """All of them, each failed cell by itself."""
    broken = [queue for word in _BROKEN for queue in _queues(view, word)]
    in_doubt = [queue for word in _IN_DOUBT for queue in _queues(view, word)]
    return (
        *(_of_queue(queue, view, language, is_broken=True) for queue in broken),
        *(need for queue in view.queues for need in _unreadable(queue, language)),
        *(_of_failed(cell, language) for cell in view.of_words(("failed", "damaged"))),
        *(_of_queue(queue, view, language, is_broken=False) for queue in in_doubt),
        *_idle(view, history, language),
        *_blocked(view, language),
        *_problems(view),
        *(_warned(queue, event, language) for queue, event in warnings(view)),
        *(Need("", in_language(t, language)) for q in view.queues for t in q.undelivered),
        *(Need("", note, is_quiet=True) for note in quiet.notes),
        *_clock(quiet, language),
    )


def _warned(queue: str, event: Event, language: str) -> Need:
    return Need(queue, in_language(said_warning(event.data), language))


def alike(found: Sequence[Need], language: str) -> tuple[Need, ...]:
    """The same with many cells that failed alike in one row."""
    rows: list[Need] = []
    for key, group in groupby(found, key=_kind):
        those = list(group)
        if key is None or len(those) <= ALIKE_SHOWN:
            rows += those
        else:
            first = those[0]
            rows.append(
                Need(word("alike", language, n=len(those)), first.text, "", "", first.cell, True)
            )
    return tuple(rows)


def by_kind(found: Iterable[Need]) -> tuple[Need, ...]:
    """Failed cells of one kind beside each other, so that `alike` can count them."""
    rows = list(found)
    order = {kind: place for place, kind in reversed(list(enumerate(map(_kind, rows))))}
    cells = sorted((n for n in rows if _kind(n)), key=lambda need: order[_kind(need)])
    taken = iter(cells)
    return tuple(next(taken) if _kind(need) else need for need in rows)


def _kind(need: Need) -> str | None:
    """By what a failed cell counts as alike: its class of failure. What a box needs has no box."""
    return need.text.split(" ")[0] if need.where else None


def drawn(rows: Sequence[Need], room: int, glyphs: Glyphs) -> list[Line]:
    """Cells, boxes and what is only worth knowing each have columns of their own: long names of the
    ones must not cost the words of the others their room.
    """
    columns = (
        Column("", keep=9),
        Column("", keep=8, least=10, is_name=True),
        Column("", keep=2, least=6, is_name=True),
        Column("", keep=1, is_right=True),
        Column("", keep=7, least=12),
    )
    return [
        line
        for _, those in groupby(rows, key=lambda row: (bool(row.where), row.is_quiet))
        for line in table(columns, [_fields(row, glyphs) for row in those], room, glyphs.mark)
    ]


def _fields(row: Need, glyphs: Glyphs) -> tuple[Line, ...]:
    look = DIM if row.is_quiet else BAD if row.is_broken else WARN
    sign = glyphs.failed if row.is_broken else glyphs.trouble
    return (
        (Span(sign, look),),
        (span(row.who),) if row.who else (),
        (span(row.where, DIM),) if row.where else (),
        (Span(row.epoch),) if row.epoch else (),
        (span(row.text, DIM if row.is_quiet else ""),),
    )


def _queues(view: RunView, condition: str) -> list[QueueView]:
    return [queue for queue in view.queues if queue.condition.word == condition]


def _of_queue(queue: QueueView, view: RunView, language: str, *, is_broken: bool) -> Need:
    age_s = heartbeat_age_s(queue, view.at)
    since = word("since", language, age=units.about(age_s)) if age_s is not None else ""
    fields = {"cell": queue.active or queue.name, "sentence": queue.condition.sentence}
    name = f"why_{queue.condition.word.replace(' ', '_')}"
    text = word(name, language, since=since, **fields)
    return Need(queue.box, text, cell=queue.active, is_broken=is_broken)


def _unreadable(queue: QueueView, language: str) -> Iterator[Need]:
    for problem in queue.problems:
        yield Need(queue.box, problem)


def _of_failed(cell: CellView, language: str) -> Need:
    now = cell.record.state if cell.record else None
    if cell.damage:
        text = f"{cell.word}: {cell.damage}"
    elif isinstance(now, state.Failed):
        reason = advice.reason(now.failure, now.reason)
        text = f"{now.failure} {in_language(reason, language)}"
    else:
        text = cell.word
    return Need(
        cell.name, " ".join(text.split()), cell.box, epoch_of(cell), cell.name, is_broken=True
    )


def _idle(view: RunView, history: History, language: str) -> Iterator[Need]:
    for queue in view.queues:
        samples = gpu_of(history, queue.name)
        idle_for_s = idle_s(samples)
        if idle_for_s is None or not queue.is_alive or queue.active is None:
            continue
        percent = f"{samples[-1].busiest_percent:.0f}"
        text = word("idle_gpu", language, percent=percent, time=units.about(idle_for_s))
        yield Need(queue.box, text, cell=queue.active)


def _blocked(view: RunView, language: str) -> Iterator[Need]:
    found = blocked_of_run(view)
    by: dict[tuple[str, str], list[str]] = {}
    for name, kept in found.items():
        by.setdefault((kept.by, kept.why), []).append(name)
    for (cell, why), names in by.items():
        text = word("blocked", language, n=len(names), by=cell, why=why)
        yield Need(cell, text, cell=cell)


def _problems(view: RunView) -> Iterator[Need]:
    """Those of the roster, but for what a row above says already."""
    silent = {queue.box for queue in view.queues if queue.condition.word == "unreachable"}
    told: Mapping[str, str] = {
        cell.name: "is verified in its journal" for cell in view.cells if cell.damage
    }
    for problem in view.problems:
        who, _, rest = problem.partition(" does not answer")
        if rest and who in silent:
            continue
        name, _, what = problem.partition(": ")
        if name in told and what.startswith(told[name]):
            continue
        yield Need("", problem)


def _clock(quiet: Quiet, language: str) -> Iterator[Need]:
    if not quiet.clocks:
        return
    first, *more = quiet.clocks
    rest = word("clock_more", language, n=len(more), command=quiet.clock_command) if more else ""
    yield Need(word("clock", language), f"{first} {rest}".strip(), is_quiet=True)
