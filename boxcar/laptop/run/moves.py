"""Cells that were moved to another queue: whose they are, and which box has yet to be told.

The claim on the tier says whose a cell is. Where each box has a tier of its own, the one of the old
box still names its old queue until that box is told, so the laptop's record counts above it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import home
from boxcar.laptop.run.open_run import OpenRun, Tell
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError, Command, DamagedError, TemporaryError, message_of
from boxcar.shared.files import attempt, codec, heartbeat, resume_pointer
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import State, Verified
from boxcar.shared.wire import run_asks

# Of several launches of a run from one project, one at a time sends and starts.
#
# Two at once with different code would start some queues from one release and some from the other.


TURN_FILE = ".launching"
WAIT_S = 1800.0  # a release of some gigabytes over a slow line
_LOOK_EVERY_S = 0.2


@contextlib.contextmanager
def take_turn(results: ResultPaths, tell: Tell) -> Iterator[None]:
    """Wait for the launch that is under way, and be the only one then.

    Raises TemporaryError where that one does not come to its end.
    """
    with home.results_to(results.root):
        atomic.make_folder(results.root)
        fd = _wait(results, tell)
    try:
        yield
    finally:
        os.close(fd)


def _wait(results: ResultPaths, tell: Tell) -> int:
    path = results.root / TURN_FILE
    if (fd := lock.try_hold(path)) is not None:
        return fd
    tell(
        _(
            "another launch of this run is in progress; this one continues when that has started "
            "its queues"
        )
    )
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
        if (fd := lock.try_hold(path)) is not None:
            return fd
    raise TemporaryError(
        _(
            "another launch of this run is still in progress; nothing was sent or started here. "
            "See what it has started"
        ),
        Command("status"),
    )


FILE = "moves.json"


@dataclass(frozen=True)
class Move:
    """`claim` is the new one. `is_told`: the tier of the old box has it."""

    claim: Claim
    queue_before: str
    box_before: str
    is_told: bool = False


@dataclass(frozen=True)
class Moves:
    FORMAT: ClassVar[str] = "moves"
    VERSION: ClassVar[int] = 1

    moves: tuple[Move, ...] = ()


def read_moves(results: ResultPaths) -> tuple[Move, ...]:
    """The last move of each cell. Raises DamagedError."""
    path = _file(results)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    return codec.from_document(Moves, data, str(path)).moves


def keep_moves(results: ResultPaths, move: Move) -> None:
    """In the place of what was recorded of this cell."""
    _write(results, (*_others(results, move), move))


def drop_move(results: ResultPaths, move: Move) -> None:
    """It was refused, and is not made."""
    _write(results, _others(results, move))


def boxes_told(results: ResultPaths, move: Move) -> None:
    keep_moves(results, replace(move, is_told=True))


def tell_boxes(run: OpenRun, say: Callable[[str], None]) -> None:
    """Whoever has just asked the boxes tells those that can be told by now what was moved, before
    an agent there may start, and says a sentence for each.
    """
    for move in _untold(run):
        box = move.box_before
        if not run.is_planned(box) or run.is_out_of_reach(box):
            continue
        try:
            run.ask(box, run_asks.MoveClaim(move.claim, move.queue_before, is_told=True))
        except (BoxcarError, OSError) as error:
            why = message_of(error).text
            say(
                _(
                    "could not tell {box} that {cell} has moved: {why}",
                    box=box,
                    cell=move.claim.cell,
                    why=why,
                )
            )
            continue
        boxes_told(run.results, move)
        say(
            _(
                "{box} has been told that {cell} now belongs to {queue}",
                box=box,
                cell=move.claim.cell,
                queue=move.claim.queue,
            )
        )


def refuse_untold(run: OpenRun, queue: str) -> None:
    """Raise TemporaryError where the agent of this queue would take up what it has no more."""
    for move in _untold(run):
        if move.queue_before == queue:
            raise TemporaryError(
                _(
                    "{box_before} must first be told that {cell} has moved",
                    box_before=move.box_before,
                    cell=move.claim.cell,
                )
            )


def untold(run: OpenRun) -> list[str]:
    """For people: what may be trained twice."""
    return [
        _(
            "{cell} has moved to {queue}, but {box} has not been told: if it comes back by "
            "itself, it trains the cell until it is told",
            cell=move.claim.cell,
            queue=move.claim.queue,
            box=move.box_before,
        )
        for move in _untold(run)
    ]


def continued_moves(run: OpenRun, events: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    """From where each moved cell goes on that its new queue has not begun; `events` by queue."""
    for move in _moves(run):
        name, queue = move.claim.cell, move.claim.queue
        if any(event.cell == name for event in events.get(queue, ())):
            continue
        how = _from(run, move, events.get(move.queue_before, ()))
        about = {"cell": name, "before": move.queue_before, "queue": queue, "how": how}
        yield _("{cell}: moved from {before} to {queue}, where it {how}", **about)


def _from(run: OpenRun, move: Move, events: Sequence[Event]) -> str:
    cell = move.claim.cell
    try:
        pointer = (
            resume_pointer.read_file(run.results.resume_pointer(cell))
            if run.plan.durable_scope == EACH_BOX
            else resume_pointer.read_resume_pointer(run.tier.resume(cell))
        )
    except (DamagedError, OSError) as error:
        return _("starts over, unless its checkpoint is repaired: {error}", error=error)
    if pointer is None:
        return _("starts over: none of its checkpoints can be reached")
    steps = [
        event.data["progress"].get("step")
        for event in events
        if event.type == "cell.progress" and event.cell == cell and event.at <= pointer.at
    ]
    if steps and steps[-1] is not None:
        step = _(", from step {step} or later", step=steps[-1])
        return _("resumes from its checkpoint of {at}{step}", at=pointer.at, step=step)
    # An event tells of a step once a minute, the heartbeat always: of one that is not saved yet.
    last = _last_step(run, move)
    seen = _("; the last known step is {step}", step=last) if last is not None else ""
    return _("resumes from its checkpoint of {at}{step}", at=pointer.at, step=seen)


def _last_step(run: OpenRun, move: Move) -> object:
    try:
        beat = heartbeat.read_heartbeat(run.tier.heartbeat(move.queue_before))
    except (DamagedError, OSError):
        return None
    one = beat.of_cell(move.claim.cell) if beat else None
    return one.progress.get("step") if one else None


def _untold(run: OpenRun) -> list[Move]:
    return [move for move in _moves(run) if not move.is_told]


def _moves(run: OpenRun) -> tuple[Move, ...]:
    try:
        return read_moves(run.results)
    except (DamagedError, OSError):
        return ()  # `look` says so


def owners_of_lines(run: OpenRun, states: Mapping[str, State]) -> dict[str, str]:
    """The queue that each cell belongs to which was begun and is not verified, as far as known."""
    open_cells = {
        name
        for state in states.values()
        for name, record in state.cells.items()
        if not isinstance(record.state, Verified)
    }
    found = {name: claim.queue for name in open_cells if (claim := _claim(run, name))}
    if run.plan.durable_scope == EACH_BOX:
        found |= {move.claim.cell: move.claim.queue for move in _moves(run)}
    return found


def _claim(run: OpenRun, cell: str) -> Claim | None:
    try:
        return attempt.read_claim(run.tier.claim(cell))
    except (DamagedError, OSError):
        return None  # its agent stops over it, and the journals tell the rest


def _others(results: ResultPaths, move: Move) -> tuple[Move, ...]:
    return tuple(known for known in read_moves(results) if known.claim.cell != move.claim.cell)


def _write(results: ResultPaths, known: tuple[Move, ...]) -> None:
    atomic.make_folder(results.root)
    atomic.write_whole(_file(results), codec.to_document(Moves(known)))


def _file(results: ResultPaths) -> Path:
    return results.root / FILE
