"""One attempt at a cell, on the box's scratch: who runs it, and how it ended.

The wrapper that runs the attempt writes both; the agent reads them, also one that was started after
the first had died.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import regular_file
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# All of them lie where the cell's script may write too.
_MOST_BYTES = 1024 * 1024


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
    extra: dict[str, Any] = field(default_factory=dict)


def read_running(path: Path) -> Running | None:
    data = _read(path)
    if data is None:
        return None
    return codec.from_document(Running, data, str(path))


def read_processes(path: Path) -> Processes | None:
    data = _read(path)
    if data is None:
        return None
    return codec.from_document(Processes, data, str(path))


def read_done(path: Path) -> Done | None:
    data = _read(path)
    if data is None:
        return None
    return codec.from_document(Done, data, str(path))


def _read(path: Path) -> bytes | None:
    """None too for what is no record, such as a pipe that a script has put there."""
    try:
        return regular_file.read_at(path, _MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, regular_file.StrangeFileError):
        return None
