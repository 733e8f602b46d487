"""The one command that brings a run on, decided from the view of it and from the results here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.common.units import duration
from boxcar.laptop.places.site import Site
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run.first_minute import PROBE_S
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.run.view import (
    DAMAGED,
    DROPPED,
    Blocked,
    CellView,
    QueueView,
    RunView,
    blocked_of_run,
)
from boxcar.laptop.verbs import control, verify
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import Command, DamagedError, Message, message_of, some
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.control import DRAIN, RUN, STOP
from boxcar.shared.paths import ResultPaths
from boxcar.shared.process import ended_by
from boxcar.shared.record import dataclass

# Agents that are about to end when `launch` comes: a lock that is held is no work yet.
#
# A drain is taken back, so that its agent goes on. A stop has begun to end what runs, so its end is
# waited for, and `launch` starts another one then. Where an agent goes on, it is looked at once
# more: it may have been just leaving. Nothing is written but the orders that are taken back, so a
# `launch` that is interrupted here leaves all as it was asked for.


LOOKS_AGAIN_S = 3.0
# A grace of a minute, a large result that is settled, and a second home that does not answer.
LEAVES_WITHIN_S = 1200.0
_MOST_NAMED = 4


def until_left(site: Site, view: RunView, queues: Sequence[str]) -> RunView:
    """The view once nobody of these queues is about to end, as far as that can be seen."""
    view = _until(site, view, queues, _delivers_after_its_end, PROBE_S)
    _take_back_drains(site, [queue for queue in _of(view, queues) if _is_asked(queue, DRAIN)])
    if stopping := [queue.name for queue in _of(view, queues) if is_stopping(queue)]:
        named = some(stopping, _MOST_NAMED)
        show.say(Sentence("orders.waits_for_end", queues=named, n=len(stopping)))
        view = _until(site, view, queues, is_stopping, LEAVES_WITHIN_S)
    if any(queue.is_alive for queue in _of(view, queues)):
        time.sleep(LOOKS_AGAIN_S)
        view = _look_again(site)
    return view


def is_stopping(queue: QueueView) -> bool:
    """Whether its agent was asked to end at once, and has not yet."""
    return _is_asked(queue, STOP)


def does_not_end(queue: QueueView) -> Message:
    return Message(Sentence("orders.does_not_end", queue=queue.name), Command("launch"))


def _is_asked(queue: QueueView, want: str) -> bool:
    return bool(queue.is_alive and queue.wanted == want)


def _delivers_after_its_end(queue: QueueView) -> bool:
    """Whether a `watch` holds it, which delivers late webhooks."""
    return bool(queue.is_alive and queue.session and queue.session.ended)


def _of(view: RunView, queues: Sequence[str]) -> list[QueueView]:
    return list(map(view.queue, queues))


def _take_back_drains(site: Site, queues: Sequence[QueueView]) -> None:
    by_name = {queue.name: queue.box for queue in queues}
    done, errors = side_by_side.each_or_why(
        by_name, lambda name: control.write_control(site, by_name[name], name, RUN)
    )
    for name in done:
        show.say(Sentence("orders.drain_taken_back", queue=name))
    for name, error in errors.items():
        show.say(message_of(error).under(name))


def _until(
    site: Site,
    view: RunView,
    queues: Sequence[str],
    is_about_to_end: Callable[[QueueView], bool],
    most_s: float,
) -> RunView:
    """The view once no queue is; or after that time."""
    began = time.monotonic()
    left = [queue.name for queue in _of(view, queues) if is_about_to_end(queue)]
    if not left:
        return view
    with show.progress(Sentence("how_far.leaving"), THINGS) as bar:
        part = bar.part(len(left))
        while left and time.monotonic() - began < most_s:
            time_s = duration(time.monotonic() - began)
            names = some(left, _MOST_NAMED)
            part.doing = Sentence("how_far.leaves", queues=names, time=time_s)
            time.sleep(site.tick_s)
            view = _look_again(site)
            ended = [name for name in left if not is_about_to_end(view.queue(name))]
            left = [name for name in left if name not in ended]
            part.add(len(ended))
    return view


def _look_again(site: Site) -> RunView:
    site.refresh(is_exact=True)
    return look_at_run(site, timestamp.utc_now())


# A queue's condition, and the verb to type; the worst comes first.
_TROUBLES = (
    ("damaged", "repair"),
    ("unknown", "status"),
    ("unreachable", "status"),
    ("held", "status"),
    ("trainer dead", "stop"),
    ("agent dead", "launch"),
    ("no room", "watch"),
)


@dataclass(frozen=True)
class NextStep:
    """What to type next, or None where nothing is left to do; and why."""

    command: Command | None
    because: str | Message


def next_step(view: RunView, site: Site) -> NextStep:
    """The one command that brings the run on, from the view and from the results here."""
    results = site.results
    if is_over(site):
        return NextStep(None, Sentence("next_step.torn_down", folder=results.root))
    step = _next_for_queues(view, results) or _next_for_results(view, site)
    problems = (*site.project.doubts, *site.project.faults)
    return _after_a_fix(step, problems) if problems else step


def _after_a_fix(step: NextStep, problems: Sequence[Message]) -> NextStep:
    """What is refused while the local files are wrong is no next step: `plan` lists all of it."""
    if step.command is None or step.command.verb not in ("launch", "push"):
        return step
    first = Sentence("next_step.fix_first", problem=problems[0].text)
    return NextStep(Command("plan"), Message(first, step.command))


def sentence(step: NextStep) -> Sentence:
    because = show.typed(step.because)
    if step.command is None:
        return Sentence("next_step.nothing", because=because)
    return Sentence("next_step.next", command=show.typed(step.command), because=because)


def _next_for_queues(view: RunView, results: ResultPaths) -> NextStep | None:
    words = {queue.name: queue.condition.word for queue in view.queues}
    at_work = _with_work(view)
    for trouble, verb in _TROUBLES:
        named = [name for name, word in words.items() if word == trouble]
        if trouble == "agent dead":
            named = [name for name in named if name in at_work]
        if named:
            because = f"next_step.{trouble.replace(' ', '_')}"
            return NextStep(Command(verb), Sentence(because, queues=", ".join(named), n=len(named)))
    ended = [queue.name for queue in view.queues if _was_ended(queue)]
    if named := [name for name in ended if name in at_work]:
        because = Sentence("next_step.ended_by_system", queues=", ".join(named), n=len(named))
        return NextStep(Command("launch"), because)
    if any(queue.is_alive or queue.scheduled for queue in view.queues):
        return NextStep(Command("watch"), _while_at_work(view, results))
    # Before a launch: nothing can be put back while an agent is at work.
    if damaged := _damaged(view, results):
        return NextStep(Command("repair"), _are_damaged(damaged))
    doubtful = {cell.name for cell in view.roster.cells if cell.doubt}
    unfinished = [
        cell
        for cell in view.of_words(view.by_word.keys() - {"verified", "failed", DAMAGED, DROPPED})
        if cell.name not in doubtful
    ]
    if not unfinished:
        return None
    found = blocked_of_run(view)
    if all(cell.name in found for cell in unfinished):
        kept = [found[cell.name] for cell in unfinished]
        return NextStep(kept[0].command, _are_blocked(kept))
    if _are_above(view, unfinished):
        again = Command("launch", ("--start-index", "0"))
        return NextStep(again, Sentence("next_step.above", n=len(unfinished)))
    return NextStep(Command("launch"), Sentence("next_step.unfinished", n=len(unfinished)))


def _are_blocked(kept: Sequence[Blocked]) -> Sentence:
    return Sentence("next_step.blocked", n=len(kept), by=kept[0].by, why=kept[0].why)


def _with_work(view: RunView) -> set[str]:
    """The queues that have a cell left, were they without an agent: all of one may have been moved,
    or dropped.
    """
    left = view.of_words(view.by_word.keys() - {"verified", DAMAGED, DROPPED})
    empty = {queue.name for queue in view.queues} - {cell.queue for cell in view.cells}
    return empty | {cell.queue for cell in left}


def _was_ended(queue: QueueView) -> bool:
    """Whether nobody has asked for its end, and nobody starts it again: a job that was cancelled
    beside others that run.
    """
    by = queue.session.by if queue.session else None
    return queue.condition.word == "stopped" and by == ended_by.SIGNAL


def _are_above(view: RunView, cells: Sequence[CellView]) -> bool:
    """Whether the agents of their queues have skipped them, because they were told where to
    begin.
    """
    sessions = {queue.name: queue.session for queue in view.queues if queue.session}
    first = {name: session.start_cell for name, session in sessions.items() if session.start_cell}
    named = {*first.values()}
    index = {cell.name: cell.index for cell in view.cells if cell.name in named} if named else {}
    begins = {queue: index.get(name) for queue, name in first.items()}
    return all(
        (begin := begins.get(cell.queue)) is not None
        and cell.index is not None
        and cell.index < begin
        for cell in cells
    )


def _damaged(view: RunView, results: ResultPaths) -> list[str]:
    """The cells whose result is not on the tier as it was, but for those that were given up."""
    if not view.damaged:
        return []
    try:
        verdicts = receipt.read_run(results.receipt).cells
    except (OSError, DamagedError):
        return list(view.damaged)
    given_up = {verdict.cell for verdict in verdicts if verdict.because is not None}
    return [cell for cell in view.damaged if cell not in given_up]


def _are_damaged(cells: list[str]) -> Sentence:
    if len(cells) == 1:
        return Sentence("next_step.result_damaged", cell=cells[0])
    return Sentence("next_step.results_damaged", n=len(cells))


def _while_at_work(view: RunView, results: ResultPaths) -> Message:
    if damaged := _damaged(view, results):
        then = Sentence("next_step.at_work_damaged", damaged=_are_damaged(damaged))
        return Message(then, Command("repair"))
    what = "at_work" if any(queue.is_alive for queue in view.queues) else "queued"
    failed = _failed(view)
    if not failed:
        return Message(Sentence(f"next_step.{what}"))
    return Message(Sentence(f"next_step.{what}_failed", n=len(failed)), _explain(failed[0]))


def _failed(view: RunView) -> list[str]:
    return [cell.name for cell in view.of_words(("failed",))]


def _next_for_results(view: RunView, site: Site) -> NextStep:
    results = site.results
    if doubts := view.roster.doubts:
        return NextStep(Command("verify"), Sentence("next_step.open", doubt=doubts[0].what))
    if verify.is_settled(view, site):
        if stale := verify.stale_cells(view, site):
            return NextStep(Command("pull"), stale[0].what)
        return NextStep(Command("down"), Sentence("next_step.down"))
    if lost := [cell.doubt for cell in view.roster.cells if cell.doubt]:
        return _for_lost(lost[0])
    if missing := _missing_here(view, results):
        return NextStep(Command("pull"), _to_pull(missing, _failed(view)))
    if failed := _failed(view):
        return NextStep(_explain(failed[0]), Sentence("next_step.failed", n=len(failed)))
    return NextStep(Command("verify"), Sentence("next_step.verify"))


def _for_lost(doubt: Missing) -> NextStep:
    head = str(doubt.cell)
    if isinstance(doubt.command, Command):
        return NextStep(doubt.command, Message(doubt.what).under(head))
    return NextStep(Command("verify"), doubt.message.under(head))


def _to_pull(verified: int, failed: Sequence[str]) -> Message:
    if not failed:
        return Message(Sentence("next_step.to_pull", n=verified))
    both = Sentence("next_step.to_pull_failed", n=verified, failed=len(failed))
    return Message(both, _explain(failed[0]))


def _explain(cell: str) -> Command:
    return Command("explain", ("--cell", cell))


def _missing_here(view: RunView, results: ResultPaths) -> int:
    """How many verified cells are. Before the first pull no folder of them is asked for."""
    try:
        with os.scandir(results.cells) as found:
            here = {entry.name for entry in found}
    except OSError:
        here = set()
    return sum(
        is_missing_here(cell, results) if cell.name in here else cell.verified_sha256 is not None
        for cell in view.cells
    )


def is_missing_here(cell: CellView, results: ResultPaths) -> bool:
    """Whether a verified cell does not lie in the results. Others have nothing to be pulled."""
    sha256 = cell.verified_sha256
    try:
        return sha256 is not None and manifest.sha256(results.manifest(cell.name)) != sha256
    except OSError:
        return True
