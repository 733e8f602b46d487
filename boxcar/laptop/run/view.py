"""What one look at a run found: its queues, its cells, and what is the matter with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from boxcar.laptop.hosts.scheduled import JobEnd, Scheduled
from boxcar.laptop.project.queues import sync
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Roster, RosterCell
from boxcar.laptop.run.state_words import state_sentence
from boxcar.shared import names, state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import Command, some
from boxcar.shared.files import control, queue_line
from boxcar.shared.files.heartbeat import Heartbeat, Seen
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.metrics.records import NOT_METRICS
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, chained, mark
from boxcar.shared.state import CellRecord, Session, State

# A result is settled while the next cell runs: of two, the one that runs is the one at work.
AT_WORK = (state.Running, state.Waiting, state.Claimed, state.Succeeded, state.Synced)


_NAMED = 3
# In place of its state's word: of a cell that never ran, whose line was commented out.
DROPPED = "dropped"
# The same of one that its journal calls verified, whose result is not on the tier as it was.
DAMAGED = "damaged"
# The same of one that a person has given up, unless it runs again.
ABANDONED = "abandoned"
_MAY_BE_GIVEN_UP = ("failed", "queued", "preempted", "retrying", "unknown")
# The same of one that its journal calls running, of which nothing runs any more.
BROKEN_OFF = "broken off"
# Stands before what was guessed from a log.
GUESS = "~"


@dataclass(frozen=True)
class Condition:
    """What is the matter with a queue, in one word and in a sentence."""

    word: str
    sentence: str


NOT_KNOWN = Condition("unknown", _("not checked yet"))


@dataclass(frozen=True)
class QueueView:
    """One queue. `state` is None where its journal cannot be read, and so is `begun`, the cells
    that it tells of.

    `is_alive` is None where nobody can tell; `silent` says why its box did not answer.
    `clock_ahead_s` is by how much the box's clock, which stamped everything here, is ahead of the
    laptop's. `is_cell_alive` is whether the attempt of the running cell is, and `alive_beside` are
    the cells beside it whose attempts are. `steps_at` are the reports of that attempt, and
    `moved_at` is the newest sign of a step. `scheduled`: a scheduler is to start its agent, and has
    not yet; `ends`: how it says that agents ended.
    """

    name: str
    box: str
    events: Sequence[Event] = ()
    begun: Sequence[RosterCell] | None = ()
    state: State | None = field(default_factory=State)
    is_damaged: bool = False
    is_torn: bool = False
    is_alive: bool | None = False
    heartbeat: Heartbeat | None = None
    wanted: str = control.RUN
    silent: str | None = None
    clock_ahead_s: float = 0.0
    is_cell_alive: bool | None = None
    alive_beside: tuple[str, ...] = ()
    steps_at: tuple[str, ...] = ()
    moved_at: str | None = None
    scheduled: Scheduled | None = None
    ends: tuple[JobEnd, ...] = ()
    problems: tuple[str, ...] = ()
    undelivered: tuple[str, ...] = ()
    condition: Condition = NOT_KNOWN  # filled once, by `look`

    @property
    def session(self) -> Session | None:
        return self.state.session if self.state else None

    @cached_property
    def active(self) -> str | None:
        """The cell between its claim and its end: the one that runs before one that is settled."""
        return active_cell(self.state) if self.state else None

    @property
    def at_work(self) -> list[str]:
        """The cells of which an attempt runs or begins, and does not wait for its next try."""
        cells = self.state.cells.items() if self.state else ()
        at_work = state.Claimed | state.Running
        return [name for name, record in cells if isinstance(record.state, at_work)]


@dataclass(frozen=True)
class CellView:
    """One cell of the roster. `record` is None where the journal that may hold it is unreadable.

    `queue` and `box` are where it ran, else where it stands. `seconds` is the time spent in its
    attempts until now, or until the last sign of one of which nobody knows that it still runs;
    `progress` and `metrics` are the last that were reported, `best` the best until now of what is
    not verified. `damage` is why the result of a verified cell is not on the durable tier as its
    journal says. `accepted` is what the laptop has proven of a result that its box could not,
    `doubt` why that cannot be read. `after`: the cells that its line names. `given_up`: why a
    person has, as the last receipt says. `seen`: what the log of a cell that runs seems to say.
    """

    name: str
    queue: str
    box: str
    cfg: str
    task: str
    epochs: int | None
    index: int | None
    record: CellRecord | None = None
    seconds: float = 0.0
    progress: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    is_dropped: bool = False
    damage: str | None = None
    accepted: Accepted | None = None
    doubt: str | None = None
    after: tuple[str, ...] = ()
    is_broken_off: bool = False
    given_up: str | None = None
    seen: Seen | None = None

    @property
    def sentence(self) -> str:
        """The word, and who accepted a result that its box could not."""
        word = state_sentence(self.word)
        if self.accepted is None or not self.is_verified:
            return word
        return chained(mark("{first}, {second}"), [word, accepted_sentence(self.accepted)])

    @property
    def word(self) -> str:
        told = self.word_of_journal
        is_over = told in (*_MAY_BE_GIVEN_UP, DAMAGED, BROKEN_OFF)
        return ABANDONED if self.given_up is not None and is_over else told

    @property
    def word_of_journal(self) -> str:
        if self.is_dropped:
            return DROPPED
        if self.damage:
            return DAMAGED
        if self.is_broken_off:
            return BROKEN_OFF
        return self.record.state.word if self.record else "unknown"

    @property
    def epochs_done(self) -> str:
        """`3/20`; of what was guessed `~3/20 45%`, or `~450/1000` steps; '' where nothing is
        known.
        """
        done = self.progress.get("epoch")
        if isinstance(done, (int, float)):
            return f"{done:g}/{self.epochs}" if self.epochs else f"{done:g}"
        seen = self.seen
        if seen is None:
            return ""
        epoch, epochs = seen.epoch, seen.epochs or self.epochs or 0
        if epoch is not None and (epoch <= epochs or seen.step is None or epoch == int(epoch)):
            part = f" {100 * seen.step // seen.steps}%" if seen.steps and seen.step else ""
            of = f"/{epochs}" if epoch <= epochs else ""
            return f"{GUESS}{epoch:.3g}{of}{part if epoch == int(epoch) else ''}"
        if seen.step is None:
            return ""
        return f"{GUESS}{seen.step}" + (f"/{seen.steps}" if seen.steps else "")

    @property
    def guessed(self) -> dict[str, Any]:
        """The numbers that its log seems to say, each marked; {} where it reports its own."""
        return {} if self.metrics else guessed_numbers(self.progress, self.seen)

    @property
    def speed(self) -> str:
        """Steps a second, as its log seems to say."""
        return f"{GUESS}{self.seen.per_s:.3g}/s" if self.seen and self.seen.per_s else ""

    @property
    def bytes_only(self) -> tuple[str, ...]:
        """Files of a verified result that nobody looked into."""
        now = self.record.state if self.record else None
        return now.bytes_only if isinstance(now, state.Verified) else ()

    @property
    def trusted(self) -> tuple[str, ...]:
        """Files of it that its box loaded with the code that wrote them, and nobody else."""
        now = self.record.state if self.record else None
        return now.trusted if isinstance(now, state.Verified) else ()

    @property
    def marked(self) -> str:
        """What is doubtful of its result; '' where nothing is, or where it has none."""
        has_one = self.record and isinstance(
            self.record.state, state.Succeeded | state.Synced | state.Verified
        )
        return self.record.doubt if self.record and has_one else ""

    @property
    def is_verified(self) -> bool:
        return self.word == state.Verified.word

    @property
    def verified_sha256(self) -> str | None:
        """Of its manifest, where its result is on the tier as its journal says."""
        now = self.record.state if self.record and not self.damage else None
        return now.manifest_sha256 if isinstance(now, state.Verified) else None

    @property
    def is_under_way(self) -> bool:
        """Whether an attempt may be writing its log."""
        states = (state.Claimed, state.Running, state.Waiting)
        return self.record is not None and isinstance(self.record.state, states)


def guessed_numbers(progress: Mapping[str, Any], seen: Seen | None) -> dict[str, Any]:
    if seen is None or any(name not in NOT_METRICS for name in progress):
        return {}
    return {f"{GUESS}{name}": value for name, value in seen.numbers.items()}


def accepted_sentence(made: Accepted) -> Sentence:
    """Such as `accepted by verify on 2026-11-22: model.pkl unpickled`."""
    at = made.at[:10]
    if made.is_lent:
        return _("reused: its result is on this machine, verified on {at}", at=at)
    if made.unpickled:
        return _(
            "accepted by verify on {at}: {files} unpickled",
            at=at,
            files=some(made.unpickled, _NAMED),
        )
    return _("accepted by verify on {at}", at=at)


@dataclass(frozen=True)
class RunView:
    """`problems` are those of the roster; each queue has its own."""

    run: str
    at: str
    queues: tuple[QueueView, ...]
    cells: tuple[CellView, ...]
    problems: tuple[str, ...] = ()
    roster: Roster = field(default_factory=Roster)

    @cached_property  # asked for with each cell
    def damaged(self) -> dict[str, str]:
        """What is wrong with the results that are not on the durable tier as the journals say."""
        return {cell.name: cell.damage for cell in self.cells if cell.damage}

    @cached_property
    def by_word(self) -> dict[str, list[CellView]]:
        """The cells by their word: most of a large run's have one."""
        found: dict[str, list[CellView]] = {}
        for cell in self.cells:
            found.setdefault(cell.word, []).append(cell)
        return found

    def of_words(self, words: Collection[str]) -> Sequence[CellView]:
        """The cells with one of these words, in their order."""
        return [cell for cell in self.cells if cell.word in words]

    @cached_property
    def failed(self) -> frozenset[str]:
        """The cells that failed for good, as far as the journals could be read."""
        return frozenset(
            cell.name
            for cell in self.cells
            if cell.record is not None and isinstance(cell.record.state, state.Failed)
        )

    def queue(self, name: str) -> QueueView:
        """Raises KeyError for a queue that is not in the plan."""
        for queue in self.queues:
            if queue.name == name:
                return queue
        raise KeyError(name)

    def queues_of(self, cell: CellView) -> list[QueueView]:
        """Those that have the cell, or may take it: of a pool all members."""
        return self.by_queue_or_file.get(cell.queue, [])

    @cached_property
    def by_queue_or_file(self) -> dict[str, list[QueueView]]:
        """By the name of a queue itself, by that of a pool's file all members."""
        found: dict[str, list[QueueView]] = {}
        for queue in self.queues:
            for name in {queue.name, names.file_of(queue.name)}:
                found.setdefault(name, []).append(queue)
        return found


def active_cell(state_: State) -> str | None:
    places = {
        name: AT_WORK.index(type(record.state))
        for name, record in state_.cells.items()
        if isinstance(record.state, AT_WORK)
    }
    return min(places, key=places.__getitem__, default=None)


# Which cell keeps another from its turn: one that it comes after, and that nobody will verify.


@dataclass(frozen=True)
class Blocked:
    """`by`: the cell that has to be seen to first, through however many others; `why` that one."""

    by: str
    why: str

    @property
    def command(self) -> Command:
        return Command("explain", ("--cell", self.by))


def blocked_of_run(view: RunView) -> dict[str, Blocked]:
    """By cell, what keeps it for good; not those that are done or failed themselves."""
    cells = {cell.name: cell for cell in view.cells}
    waiting = [cell for cell in view.cells if cell.after and _is_to_come(cell)]
    found: dict[str, Blocked] = {}
    before = -1
    while len(found) > before:  # once more for each that comes after a later line
        before = len(found)
        for cell in waiting:
            if cell.name not in found and (kept := _kept(cell, cells, found)):
                found[cell.name] = kept
    return found


def _kept(
    cell: CellView, cells: Mapping[str, CellView], found: Mapping[str, Blocked]
) -> Blocked | None:
    for name in cell.after:
        if name in found:
            return found[name]
        if why := _why_never(cells.get(name)):
            return Blocked(name, why)
    return None


def _is_to_come(cell: CellView) -> bool:
    now = cell.record.state if cell.record else None
    return not cell.is_dropped and not isinstance(now, state.Verified | state.Failed)


def _why_never(cell: CellView | None) -> str:
    """Why a cell that another comes after will not be verified by itself; '' where it may."""
    if cell is None:
        return _("is not in any queue")
    if cell.is_dropped:
        return _("is dropped")
    return _("failed") if cell.word == state.Failed.word else ""


# Where a queue begins: `--start-index` means a cell, and is kept as that cell's name.
#
# Lines above it may be commented out later. A number would mean another cell then, also when the
# queue is launched again or its box was rebooted.


def begin_of_run(run: OpenRun, queue: QueueView, start_index: int | None) -> tuple[int, str | None]:
    """How many lines are skipped, and the first cell to run; None where all of them are.

    Without a `start_index` as the queue was started before. Raises OSError.
    """
    if start_index is None:
        before = queue.session
        return (before.start_index, before.start_cell) if before else (0, None)
    local = run.project.queue_files[names.file_of(queue.name)].read_bytes()
    lines = queue_line.parse_queue(
        sync.joined(local, sync.read_tier_queue(run.tier.queue(queue.name)))
    ).lines
    index = min(start_index, len(lines))
    first = next((line.name for line in lines[index:] if isinstance(line, CellLine)), None)
    return index, first if index else None
