"""What needs a person, the worst first: boxes, failed cells, idle GPUs, and what happens by itself.

Pure. Each is one row; which of them have room is the layout's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.project.from_environment import missing_for_boxes
from boxcar.laptop.project.job import Job
from boxcar.laptop.run.condition import heartbeat_age_s, may_run
from boxcar.laptop.run.news import warnings
from boxcar.laptop.run.view import CellView, QueueView, RunView, blocked_of_run
from boxcar.laptop.triage import advice
from boxcar.laptop.view.gpu_history import History, idle_s
from boxcar.shared import state, timestamp
from boxcar.shared.event_words import heard
from boxcar.shared.process import end_reason
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, in_language, mark

# Of each condition of a queue that needs a person what is said of it, the worst first.
_BROKEN = {
    "damaged": mark("its event log is damaged; what happened after the damage is unknown"),
    "agent dead": mark("its agent is gone; launch continues where it stopped"),
    "trainer dead": mark("no process of {cell} is left: stop it, then launch again"),
    "no room": mark(
        "the disk is full, and {cell} waits: free some space, and it continues by itself"
    ),
}
UNREACHABLE = mark(
    "unreachable{since}, but may well be running: check the console (balance, power, port)"
)
# These may end by themselves.
_IN_DOUBT = {
    "held": mark("{sentence}"),
    "unknown": mark("cannot be read right now: check again before you decide anything"),
    "unreachable": UNREACHABLE,
    "stalled agent": mark("its agent holds the lock, but is silent{since}"),
    "step frozen": mark("{sentence}"),
    "incomplete": mark("{sentence}"),
    "stopped": mark("{sentence}"),
}
# More cells that failed alike stand in one row.
ALIKE_SHOWN = 3
# Of a platform's clock that much is left.
FIFTH, TWENTIETH = 0.2, 0.05
_OVER = ("done", "drained", "stopped", "incomplete")


def needs_person(condition: str) -> bool:
    return condition in _BROKEN or condition in _IN_DOUBT


def is_broken(condition: str) -> bool:
    """Whether it does not end by itself."""
    return condition in _BROKEN


@dataclass(frozen=True)
class Need:
    """`cell` is what can be opened for it, `kind` the class of a cell's failure."""

    who: str
    text: str
    where: str = ""
    epoch: str = ""
    cell: str | None = None
    is_broken: bool = False
    is_quiet: bool = False  # worth knowing, and nothing is wrong yet
    kind: str = ""


@dataclass(frozen=True)
class Quiet:
    """What the run's site says: what is switched off, whether its boxes cost money until somebody
    ends them, and whether that was done. `open_meters`: of boxes on which all is done but that
    somebody saw their meter end, what is said of each. `budgets`: what is said of those that are
    half spent or more, and whether they are spent. `countdowns`: what is said of what the platform
    will do to a box that was stopped, and which share of the time is left.
    """

    notes: tuple[str, ...] = ()
    is_billed: bool = False
    is_over: bool = False
    open_meters: tuple[tuple[str, str], ...] = ()
    budgets: tuple[tuple[str, bool], ...] = ()
    countdowns: tuple[tuple[str, float], ...] = ()


def needs_of_run(view: RunView, history: History, quiet: Quiet, language: str) -> tuple[Need, ...]:
    """All of them, each failed cell by itself; of a run that was torn down only its open meters."""
    billing = tuple(Need(box, text, is_broken=True) for box, text in quiet.open_meters)
    clocks = tuple(_of_countdown(text, left) for text, left in quiet.countdowns)
    if quiet.is_over:
        return (*billing, *clocks)
    ended = {need.who for need in billing}
    found = (
        *billing,
        *clocks,
        *(Need("", text, is_broken=is_spent) for text, is_spent in quiet.budgets),
        *_queues(view, _BROKEN),
        *(Need(queue.box, problem) for queue in view.queues for problem in queue.problems),
        *(_of_failed(cell, language) for cell in view.of_words(("failed", "damaged"))),
        *_queues(view, _IN_DOUBT),
        *(need for need in (_unused(view) if quiet.is_billed else ()) if need.who not in ended),
        *_idle(view, history),
        *_blocked(view),
        *_problems(view),
        *(Need(queue, heard(event.data) or "") for queue, event in warnings(view)),
        *(Need("", text) for queue in view.queues for text in queue.undelivered),
        *(Need("", note, is_quiet=True) for note in quiet.notes),
    )
    return tuple(found)


def _of_countdown(text: str, left_share: float) -> Need:
    """At half of it worth knowing, at a fifth a warning, at a twentieth red."""
    is_late = left_share <= TWENTIETH
    return Need("", text, is_broken=is_late, is_quiet=left_share > FIFTH)


def with_alike_in_one_row(found: Sequence[Need]) -> tuple[Need, ...]:
    """The same with many cells that failed alike in one row, where the first of them stands."""
    alike: dict[str, list[Need]] = {}
    for need in found:
        alike.setdefault(need.kind, []).append(need)
    rows: list[Need] = []
    for need in found:
        those = alike.pop(need.kind, []) if need.kind else [need]
        if need.kind and len(those) > ALIKE_SHOWN:
            who = _("{n} cells", n=len(those))
            those = [Need(who, need.text, cell=need.cell, is_broken=True)]
        rows += those
    return tuple(rows)


def _needs(queue: QueueView) -> bool:
    """Not one that a person stopped: they know it."""
    is_asked_for = queue.session and queue.session.by == end_reason.STOP
    word = queue.condition.word
    return needs_person(word) and not (word == "stopped" and is_asked_for)


def _queues(view: RunView, said: Mapping[str, str]) -> Iterator[Need]:
    for word, sentence in said.items():
        for queue in (one for one in view.queues if one.condition.word == word and _needs(one)):
            age_s = heartbeat_age_s(queue, view.at)
            text = Sentence(
                sentence,
                since="" if age_s is None else _(" {age}", age=units.about(age_s)),
                cell=queue.active or queue.name,
                sentence=queue.condition.sentence,
            )
            yield Need(queue.box, text, cell=queue.active, is_broken=is_broken(word))


def _of_failed(cell: CellView, language: str) -> Need:
    now, text, kind = cell.record.state if cell.record else None, cell.word, cell.word
    if cell.damage:
        text, kind = f"{cell.word}: {cell.damage}", f"{cell.word}:"
    elif isinstance(now, state.Failed):
        reason = in_language(advice.reason(now.failure, now.reason), language)
        text, kind = f"{now.failure} {reason}", now.failure
    text = " ".join(text.split())
    return Need(cell.name, text, cell.box, cell.epochs_done, cell.name, is_broken=True, kind=kind)


def _unused(view: RunView) -> Iterator[Need]:
    """Boxes that cost money for nothing; of those above it is said already what is wrong."""
    for queue in view.queues:
        if queue.events and not (may_run(queue) or _needs(queue)):
            ended_at = queue.events[-1].at
            idle_for_s = timestamp.seconds_between(ended_at, view.at, queue.clock_ahead_s)
            text = _("no agent for {time}, and still bills", time=units.about(idle_for_s))
            yield Need(queue.box, text)


def _idle(view: RunView, history: History) -> Iterator[Need]:
    for queue in view.queues:
        samples = history.gpus.get(queue.name, ())
        idle_for_s = idle_s(samples)
        if idle_for_s is None or not queue.is_alive or queue.active is None:
            continue
        percent = f"{samples[-1].busiest_percent:.0f}"
        text = _(
            "GPU at {percent} % for {time} while a cell runs: slow data loading?",
            percent=percent,
            time=units.about(idle_for_s),
        )
        yield Need(queue.box, text, cell=queue.active)


def _blocked(view: RunView) -> Iterator[Need]:
    by: dict[tuple[str, str], int] = {}
    for kept in blocked_of_run(view).values():
        by[kept.by, kept.why] = by.get((kept.by, kept.why), 0) + 1
    for (cell, why), n in by.items():
        yield Need(
            cell,
            _("{n} {n:cell waits|cells wait} for {by}, which {why}", n=n, by=cell, why=why),
            cell=cell,
        )


def _problems(view: RunView) -> Iterator[Need]:
    """Those of the roster, but for what a row above says already."""
    silent = {queue.box for queue in view.queues if queue.condition.word == "unreachable"}
    for problem in view.problems:
        who, _verb, rest = problem.partition(" does not answer")
        name, _colon, what = problem.partition(": ")
        is_said = name in view.damaged and what.startswith("is verified in its event log")
        if not is_said and not (rest and who in silent):
            yield Need("", problem)


def webhooks_off(job: Job, view: RunView, environ: Mapping[str, str]) -> Sentence | None:
    """That the webhooks that the job asks for are sent by nobody, and why; None where they are,
    nobody asked for any, or nothing is left to tell.
    """
    needed = missing_for_boxes(job, environ)
    if not needed or all(queue.condition.word in _OVER for queue in view.queues):
        return None
    beats = [queue.heartbeat for queue in view.queues if queue.is_alive and queue.heartbeat]
    unset = [name for name in needed if name]
    if any(beat.extra.get("webhooks") for beat in beats):
        return None
    if not beats and len(unset) < len(needed):
        return None
    if unset:
        return _("webhooks: off ({name} not set)", name=unset[0])
    return _("webhooks: off (no URL was set at launch)")
