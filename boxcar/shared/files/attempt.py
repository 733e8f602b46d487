"""One attempt at a cell, on the box's scratch: who runs it, and how it ended.

The wrapper that runs the attempt writes both; the agent reads them, also one that was started after
the first had died.
"""

from __future__ import annotations

import contextlib
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# The claim of a cell: created exclusively, so that no cell is ever run by two queues.
#
# `move` replaces it by another, in one step: a cell that was claimed once is never free again.


# In the place of the cell: older agents made it before that was known, and a power cut took it.
# Its file's name says which cell's it is.
OF_NO_CELL = ""


@dataclass(frozen=True)
class Claim:
    FORMAT: ClassVar[str] = "claim"
    VERSION: ClassVar[int] = 2
    CHECKED_SINCE: ClassVar[int] = 2

    cell: str
    queue: str
    box: str
    at: str
    # The queue that it was taken from, by `move`.
    moved_from: str | None = field(default=None, metadata=codec.LATER)
    # What its line asked for, see shared/cell/said.py.
    saying: str | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_claim(path: Path) -> Claim | None:
    """The claim, or None where the cell is free."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Claim, data, str(path))


def claim_of_another(path: Path, queue: str) -> Claim | None:
    """The claim, where the cell belongs to another queue. Raises DamagedError, OSError."""
    claim = read_claim(path)
    return claim if claim and claim.queue != queue else None


# All of them lie where the cell's script may write too.
_MOST_BYTES = 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    """A process id alone may be somebody else's by now: with the start time and boot it is not."""

    FORMAT: ClassVar[str] = "running"
    VERSION: ClassVar[int] = 1

    cell: str
    attempt: int
    pid: int
    start_time: str
    boot_id: str
    started_at: str
    # Where the attempt's own part of the cell's log begins; what is before it is of earlier ones.
    log_begins_at_bytes: int = field(default=0, metadata=codec.LATER)
    # The kernel's group of its processes, '' where none could be made.
    cgroup: str = field(default="", metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    pid: int
    start_time: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Processes:
    """What an attempt has started and what still lived when its wrapper looked last."""

    FORMAT: ClassVar[str] = "processes"
    VERSION: ClassVar[int] = 1

    cell: str
    attempt: int
    boot_id: str
    processes: tuple[Process, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """How an attempt ended. `rc` as subprocess gives it: negative is the signal's number."""

    FORMAT: ClassVar[str] = "done"
    VERSION: ClassVar[int] = 1

    cell: str
    attempt: int
    rc: int
    started_at: str
    ended_at: str
    seconds: float
    oom_kills: int  # how often the box killed for memory meanwhile
    was_told_to_stop: bool
    release: str  # that the attempt was run from; the agent that reads this may have another
    # Where a launcher formed another number of ranks than it was asked for, both numbers.
    ranks_asked: int | None = field(default=None, metadata=codec.LATER)
    ranks_formed: int | None = field(default=None, metadata=codec.LATER)
    # The time limit that it was ended at.
    over_time_s: int | None = field(default=None, metadata=codec.LATER)
    # How many ranks of a launcher that ended with 0 lived on.
    ranks_alive: int | None = field(default=None, metadata=codec.LATER)
    # The most memory that one of its processes held.
    peak_bytes: int | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_running(path: Path) -> Running | None:
    return _read(Running, path)


def read_processes(path: Path) -> Processes | None:
    return _read(Processes, path)


def read_done(path: Path) -> Done | None:
    return _read(Done, path)


def log_begins_at_bytes(running: Path, number: int | None = None) -> int:
    """Where the newest attempt's part of its cell's log begins; 0 where that was not written down,
    or is of another one than `number`.
    """
    with contextlib.suppress(DamagedError, OSError):
        found = read_running(running)
        if found and number in (None, found.attempt):
            return found.log_begins_at_bytes
    return 0


def _read(kind: type[T], path: Path) -> T | None:
    """None too for what is no record, such as a pipe that a script has put there."""
    try:
        data = regular_file.read_at(path, _MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, regular_file.StrangeFileError):
        return None
    return codec.from_document(kind, data, str(path))
