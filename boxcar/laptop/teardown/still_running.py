"""What still works on the boxes, by its locks: agents, and attempts that outlived theirs."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from boxcar.laptop.common import home
from boxcar.laptop.fitness.other_runs import at_work
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.project import results_of
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Missing
from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import Command, DamagedError, message_of, some
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import CellVerdict
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.box_asks import OtherRun, OthersSeen

# What this machine's records say of another run's results: which of them are verified here.


def not_proven(run: str, cells: Mapping[str, str | None]) -> list[str]:
    """Of these cells, with the digests of their manifests, those that may lie nowhere else.

    A run that was torn down was approved as it was; a cell that a person gave up is no loss.
    """
    settled: set[str] = set()
    for results in _folders(run):
        if is_torn_down(results):
            return []
        settled |= _settled(results, cells)
    return sorted(cells.keys() - settled)


def _folders(run: str) -> Iterator[ResultPaths]:
    for known in home.known_runs():
        if known.run == run:
            yield results_of(known.job.parent, run)


def _settled(results: ResultPaths, cells: Mapping[str, str | None]) -> set[str]:
    try:
        verdicts = receipt.read_run(results.receipt).cells
    except (OSError, DamagedError):
        return set()
    return {
        one.cell
        for one in verdicts
        if one.cell in cells and _is_settled(results, one, cells[one.cell])
    }


def _is_settled(results: ResultPaths, verdict: CellVerdict, manifest_sha256: str | None) -> bool:
    if not verdict.is_settled or verdict.manifest_sha256 != manifest_sha256:
        return False
    if manifest_sha256 is None:
        return True
    try:
        return digest.of_bytes(results.manifest(verdict.cell).read_bytes()) == manifest_sha256
    except OSError:
        return False


# Whose else a box is that `down` is to end: one at work there, or with its only results.


_MOST_NAMED = 4


@dataclass(frozen=True)
class Beside:
    """A run that is not the one that ends, and what the end of the box would do to it."""

    run: str
    what: str


@dataclass(frozen=True)
class OnBoxes:
    """`strangers` are other people's programs, and `doubts` why more may be there: in sentences."""

    runs: tuple[Beside, ...] = ()
    strangers: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def on_boxes(seen: Mapping[str, OthersSeen], doubts: Iterable[str] = ()) -> OnBoxes:
    """What was seen on each box, judged by what this machine has of it."""
    return OnBoxes(
        tuple(
            Beside(other.run, what)
            for box, one in seen.items()
            for other in one.runs
            for what in _harmed(box, other)
        ),
        tuple(
            _(
                "on {box}: {program} (process {pid} of {user}), which uses its GPU and belongs to "
                "no run",
                box=box,
                pid=who.pid,
                program=who.program,
                user=who.user,
            )
            for box, one in seen.items()
            for who in one.strangers
        ),
        tuple(doubts),
    )


def _harmed(box: str, other: OtherRun) -> list[str]:
    found: list[str] = []
    if other.is_at_work:
        found.append(
            _(
                "run {run} is running on {box} ({what}), and would be ended with it",
                box=box,
                run=other.run,
                what=at_work(other),
            )
        )
    if lost := not_proven(other.run, other.results):
        cells = some(lost, _MOST_NAMED)
        found.append(
            _(
                "run {run} has {n} {n:cell|cells} on {box} not verified on this machine "
                "({cells}), which would be lost with the box",
                box=box,
                run=other.run,
                cells=cells,
                n=len(lost),
            )
        )
    return found


def stays(profile: Profile) -> dict[str, bool]:
    """Of each tier's folder whether the verb which ends the box leaves it as it is."""
    kept = profile.meter_stop.preserves
    return {
        tier.path: name in kept
        for name, tier in profile.storage.tiers.items()
        if tier.path and tier.path.startswith(("/", "~/"))
    }


DRAIN_OR_STOP = Command("drain", note=_("it finishes its cell"), or_else=Command("stop"))
_TAKE_OVER = Command("launch", note=_("it takes the cell over; then stop it"))


def find_alive(run: OpenRun, cells: Iterable[str]) -> tuple[Missing, ...]:
    """Everything that is at work, or that cannot be asked, and the command that ends it."""
    agents = tuple(
        row
        for queue in _queues(run)
        for row in _asked(functools.partial(run.is_agent_alive, queue), _agent(queue))
    )
    return agents or tuple(
        row
        for cell in cells
        for box in (known.name for known in run.plan.boxes)
        for row in _asked(functools.partial(run.is_attempt_alive, box, cell), _attempt(cell, box))
    )


@contextlib.contextmanager
def kept_still(run: OpenRun) -> Iterator[tuple[Missing, ...]]:
    """Hold the lock of every queue, so that no agent starts meanwhile; those that were not free.

    For locks on this machine. A box over ssh holds its own while it ends (`onbox answer`, end).
    """
    with contextlib.ExitStack() as held:
        taken = []
        for path in _locks(run):
            fd = lock.try_hold(path)
            if fd is None:
                taken.append(_agent(path.stem))
            else:
                held.callback(os.close, fd)
        yield tuple(taken)


def _locks(run: OpenRun) -> list[Path]:
    """Those of the plan's queues, and of queues that only an earlier release had."""
    folder = run.tier.lock("x").parent
    if not folder.is_dir():
        return []
    planned = {run.tier.lock(queue) for queue in run.plan.queues}
    return sorted(planned | set(folder.glob("*.lock")))


def _queues(run: OpenRun) -> list[str]:
    locked = [path.stem for path in _locks(run)]
    return sorted({*run.tier.known_queues([*run.plan.queues, *locked])})


def _asked(ask: Callable[[], bool | None], row: Missing) -> Iterator[Missing]:
    why: str = _("its box does not answer")
    try:
        found = ask()
    except OSError as error:
        found, why = None, message_of(error).text
    if found:
        yield row
    elif found is None:
        unknown = _("cannot tell whether {what}: {why}", what=row.what, why=why)
        yield Missing(row.cell, unknown, Command("status"))


def _agent(queue: str) -> Missing:
    return Missing(None, _("the agent of {queue} is running", queue=queue), DRAIN_OR_STOP)


def _attempt(cell: str, box: str) -> Missing:
    return Missing(cell, _("it still runs on {box}, though its agent is dead", box=box), _TAKE_OVER)
