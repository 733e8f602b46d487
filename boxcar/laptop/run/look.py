"""What is known of a run at one moment, read from the files that its agents write.

status, watch, logs and explain all look through here, so they cannot disagree. Nothing is kept
between two looks: a laptop that slept for hours has missed nothing. What cannot be read is said in
its queue's `problems`, hides no other queue, and is never taken for dead.

What lies on other machines is as of the last `boxes.refresh()`, which whoever looks calls first.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from boxcar.laptop.run import moves, run_journals, undelivered
from boxcar.laptop.run.cell_views import cell_views
from boxcar.laptop.run.condition import condition_of
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell, survey
from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView, active_cell
from boxcar.shared import names, state
from boxcar.shared.errors import BoxcarError, DamagedError, message_of
from boxcar.shared.files import control, delivered, heartbeat, journal
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.journal import Reading
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import replace
from boxcar.shared.sentence import _
from boxcar.shared.state import State

T = TypeVar("T")


def look_at_run(run: OpenRun, now: str) -> RunView:
    """Everything that is known at `now` (UTC). Raises nothing for a file that cannot be read."""
    queues = [_look_at_queue(run, name, now) for name in _queue_names(run)]
    found = survey(run, {queue.name: queue.begun for queue in queues})
    found = replace(found, notes=(*found.notes, *moves.untold(run)))
    cells = cell_views(run, found.cells, queues, now)
    queues = [_given_away(run, queue, cells) for queue in queues]
    problems = [
        *(doubt.what for doubt in found.doubts),
        *found.notes,
        *(cell.doubt.message.under(cell.name).text for cell in found.cells if cell.doubt),
        *(
            _(
                "{cell}: is verified in its event log, but {damage}",
                cell=cell.name,
                damage=cell.damage,
            )
            for cell in cells
            if cell.damage
        ),
        *(f"{cell.name}: {cell.doubt}" for cell in cells if cell.doubt),
        *moves.continued_moves(run, {queue.name: queue.events for queue in queues}),
        *run.doubts(),
    ]
    return RunView(run.plan.run, now, tuple(queues), tuple(cells), tuple(problems), found)


def _given_away(run: OpenRun, queue: QueueView, cells: Sequence[CellView]) -> QueueView:
    """A member of a pool that is dead is no trouble any more once others have what it had begun, or
    the job names its box no more.
    """
    if not names.is_member(queue.name) or queue.condition.word != "agent dead":
        return queue
    own = [cell.name for cell in cells if cell.queue == queue.name and not cell.is_verified]
    is_left = queue.active is None and queue.name in run.plan.queues
    if own or is_left:
        return queue
    now = Condition("drained", _("its agent is gone, and no cell of its pool is left to it"))
    return replace(queue, condition=now)


def _queue_names(run: OpenRun) -> list[str]:
    """The plan's queues, and those on the tier that have left it: their agent may still run."""
    try:
        return run.tier.known_queues(run.plan.queues)
    except OSError:
        return list(run.plan.queues)  # the roster says that the folder cannot be read


def _look_at_queue(run: OpenRun, name: str, now: str) -> QueueView:
    durable = run.tier
    problems: list[str] = []
    was_alive = _ask(problems, lambda: _is_alive(run, name), None)
    is_damaged, found = _read_journal(problems, run, name)
    reading, state_, begun = found or (Reading(()), None, None)
    # Asked again: an agent that started meanwhile has a first word in the journal, and no last.
    is_alive = was_alive or _ask(problems, lambda: _is_alive(run, name), None)
    beat = _ask(problems, lambda: heartbeat.read_heartbeat(durable.heartbeat(name)), None)
    wanted = _ask(problems, lambda: control.wanted(durable.control(name)), control.RUN)
    box = _box(run, name, state_)
    running = _running(state_)
    events = reading.events
    is_over = is_alive is False and not run.is_out_of_reach(box)
    steps = _steps(events, running)
    at = running[0] if running and run.is_planned(box) else None
    queue = QueueView(
        name=name,
        box=box,
        events=events,
        begun=begun,
        state=state_,
        is_damaged=is_damaged,
        is_torn=bool(reading.torn),
        is_alive=is_alive,
        heartbeat=beat,
        wanted=wanted,
        silent=run.silent_boxes().get(box),
        clock_ahead_s=run.clock_ahead_s(box),
        is_cell_alive=_ask(problems, lambda: run.is_attempt_alive(box, at), None) if at else None,
        alive_beside=_ask(problems, lambda: _alive_beside(run, box, state_, at), ()) if at else (),
        steps_at=tuple(event.at for event in steps),
        moved_at=_moved_at(run.progress_at(box, at) if at else None, running, steps, beat),
        undelivered=_ask(problems, lambda: _undelivered(run, name, events, is_over), ()),
        scheduled=run.scheduled(name),
        ends=run.ends(name),
        problems=tuple(dict.fromkeys([*problems, *run.waiting_beside(name)])),
    )
    return replace(queue, condition=condition_of(queue, now))


def _alive_beside(run: OpenRun, box: str, known: State | None, cell: str) -> tuple[str, ...]:
    """Of several that run on a box those beside `cell`, as far as somebody can tell."""
    others = (
        name
        for name, record in (known.cells if known else {}).items()
        if isinstance(record.state, state.Running) and name != cell
    )
    return tuple(name for name in others if run.is_attempt_alive(box, name))


def _undelivered(
    run: OpenRun, queue: str, events: Sequence[Event], is_over: bool
) -> tuple[str, ...]:
    sent = delivered.read_delivered(run.tier.delivered(queue))
    return undelivered.delivery_problems(queue, events, sent, is_over=is_over)


def _is_alive(run: OpenRun, queue: str) -> bool | None:
    """Whether somebody holds the queue's lock. A tier that is out of reach tells nothing."""
    if not run.tier.root.exists() and _journal_path(run, queue).exists():
        return None
    return run.is_agent_alive(queue)


def _journal_path(run: OpenRun, queue: str) -> Path:
    """The journal; where the tier is gone, such as after a teardown, the pulled copy of it."""
    path = run.tier.journal(queue)
    return path if run.tier.root.exists() else run.results.journals / path.name


def _box(run: OpenRun, queue: str, state_: State | None) -> str:
    session = state_.session if state_ else None
    return run.plan.queues.get(queue) or (session.box if session else "unknown")


def _ask(problems: list[str], read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except (DamagedError, OSError) as error:
        problems.append(message_of(error).text)
        return otherwise


def _read_journal(
    problems: list[str], run: OpenRun, name: str
) -> tuple[bool, tuple[Reading, State, Sequence[RosterCell]] | None]:
    """Whether the journal is damaged; what it holds, comes to, and which cells it tells of."""
    try:
        if run.tier.root.exists():
            found = run_journals.read_whole_journal(run, name)
        else:
            found = journal.read_journal(_journal_path(run, name))
        state_ = state.replay(found.events)
        return False, (found, state_, run_journals.cells_begun(name, found.events))
    except (DamagedError, OSError) as error:
        problems.append(message_of(error).text)
        return isinstance(error, DamagedError), None


def _running(state_: State | None) -> tuple[str, state.Running] | None:
    """The cell whose attempt runs, as the journal knows it."""
    name = active_cell(state_) if state_ else None
    now = state_.cell(name).state if state_ and name else None
    return (name, now) if name and isinstance(now, state.Running) else None


def _steps(events: Sequence[Event], running: tuple[str, state.Running] | None) -> list[Event]:
    """The reports of the running attempt, without those that tell of no new step."""
    if running is None:
        return []
    name, now = running
    reports = (
        event
        for event in events
        if event.type == "cell.progress"
        and event.cell == name
        and event.data.get("attempt") == now.attempt
        and "step" in event.data.get("progress", {})
    )
    by_step = itertools.groupby(reports, key=lambda event: event.data["progress"]["step"])
    return [next(group) for _, group in by_step]


def _moved_at(
    changed_at: str | None,
    running: tuple[str, state.Running] | None,
    steps: Sequence[Event],
    beat: Heartbeat | None,
) -> str | None:
    """The newest sign of a step: a report, the progress file, or a heartbeat that is further on."""
    if running is None:
        return None
    name, now = running
    signs = [event.at for event in steps[-1:]]
    signs += [changed_at] if changed_at else []
    if steps and beat and (one := beat.of_cell(name)):
        is_further = one.progress.get("step") != steps[-1].data["progress"]["step"]
        signs += [beat.at] if is_further else []
    # The progress file of the attempt before says nothing about this one.
    return max((sign for sign in signs if sign >= now.at), default=None)


_OVER = Condition("done", _("the run was torn down"))


def view_of_journals(run: OpenRun, now: str) -> RunView:
    """What a run that was torn down has left of its queues: their journals among the results."""
    queues = []
    for name, box in run.plan.queues.items():
        with contextlib.suppress(OSError, BoxcarError):
            found = journal.read_journal(run.results.journals / f"{name}.jsonl")
            queues.append(QueueView(name, box, tuple(found.events), condition=_OVER))
    return RunView(run.plan.run, now, tuple(queues), ())
