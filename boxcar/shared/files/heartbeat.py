"""The heartbeat of one queue's agent: replaced whole every few seconds. The agent writes it."""

from __future__ import annotations

import errno
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Of a folder or a link that leads nowhere in its place.
_NO_FILE = (errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True)
class Copying:
    """How far the copy of a cell's result is. A byte counts when it is written, and once more when
    it is read back.
    """

    cell: str
    since: str
    done_bytes: int
    total_bytes: int


# What is done with data that comes from a URL.
FETCHES, CHECKS, UNPACKS = "fetching", "checking", "unpacking"


@dataclass(frozen=True)
class Fetching:
    """How far the box is with data `name`. `total_bytes` 0: not known; `bytes_per_s` 0: nothing
    came lately.
    """

    name: str
    doing: str
    done_bytes: int
    total_bytes: int
    bytes_per_s: float


@dataclass(frozen=True)
class Seen:
    """What the cell's log, or a file that grows in its {out}, seems to say: a guess for people who
    look. `step` may begin anew with each epoch; of `numbers` None is one that is no number, such as
    NaN; `left_s` is of the whole cell.
    """

    epoch: float | None = field(default=None, metadata=codec.LATER)
    epochs: int | None = field(default=None, metadata=codec.LATER)
    step: int | None = field(default=None, metadata=codec.LATER)
    steps: int | None = field(default=None, metadata=codec.LATER)
    numbers: dict[str, Any] = field(default_factory=dict, metadata=codec.LATER)
    per_s: float | None = field(default=None, metadata=codec.LATER)
    left_s: float | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CellBeat:
    """One of several cells that run side by side. `gpus`: those that it has for itself."""

    cell: str
    attempt: int
    progress: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Any] = field(default_factory=dict)
    seen: Seen | None = None
    gpus: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Heartbeat:
    """`progress` are the last numbers, `best` the best ones until now of those that job.yaml wants
    the best of; `seen` is no more than displayed. `gauges` are numbers with their unit in the name,
    such as `scratch_free_bytes`. `journal` is how far the journal was by then: one that ends before
    has lost its tail. Where several cells run, `cells` has them all, and what stands outside of it
    is of the first.
    """

    FORMAT: ClassVar[str] = "heartbeat"
    VERSION: ClassVar[int] = 1

    queue: str
    box: str
    release: str
    at: str
    pid: int
    phase: str  # idle, running, setup, syncing
    cell: str | None = None
    attempt: int | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Any] = field(default_factory=dict, metadata=codec.LATER)
    seen: Seen | None = field(default=None, metadata=codec.LATER)
    cells: tuple[CellBeat, ...] = field(default=(), metadata=codec.LATER)
    gauges: dict[str, Any] = field(default_factory=dict)
    journal: JournalEnd | None = field(default=None, metadata=codec.LATER)
    copying: Copying | None = field(default=None, metadata=codec.LATER)
    fetching: Fetching | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def at_work(self) -> tuple[CellBeat, ...]:
        """The cells that run."""
        if self.cells or self.cell is None:
            return self.cells
        return (CellBeat(self.cell, self.attempt or 1, self.progress, self.best, self.seen),)

    def of_cell(self, cell: str) -> CellBeat | None:
        return next((one for one in self.at_work if one.cell == cell), None)


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The last heartbeat, or None where there was none yet. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    beat = codec.from_document(Heartbeat, data, str(path))
    try:
        for at in (beat.at, *([beat.copying.since] if beat.copying else [])):
            timestamp.parse_utc(at)
    except ValueError as error:
        raise DamagedError(_("{path}: at: {error}", path=path, error=error)) from error
    if beat.copying and not 0 <= beat.copying.done_bytes <= beat.copying.total_bytes:
        raise DamagedError(_("{path}: copying: more is done than there is", path=path))
    return beat


def journal_end(path: Path) -> JournalEnd | None:
    """How far the journal was at the last heartbeat; None also where what is there is none.

    Raises OSError where it cannot be read now.
    """
    try:
        beat = read_heartbeat(path)
    except DamagedError:
        return None
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return None
    return beat.journal if beat else None
