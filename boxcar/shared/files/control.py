"""What a person wants of a queue's agent: run, drain or stop. The laptop writes it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# How a queue's agent was started on its box, so that it can be started again after a reboot.
#
# On the box's scratch. `onbox answer` writes it before it starts an agent, `onbox resume` reads it,
# and it is removed when there is nothing left to go on with.


@dataclass(frozen=True)
class AgentStart:
    """`durable_dir` as the plan spells it; `env` is the agent's whole environment. `start_cell` is
    the first cell to run; where none is named, the first `start_index` lines are skipped.
    """

    FORMAT: ClassVar[str] = "start"
    VERSION: ClassVar[int] = 1

    run: str
    queue: str
    box: str
    release: str
    durable_dir: str
    start_index: int
    detach: tuple[str, ...]  # what keeps it running without us, in the order of preference
    env: dict[str, str]
    at: str
    start_cell: str | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_agent_start(path: Path) -> AgentStart:
    """Raises FileNotFoundError, or DamagedError for a file that is no such record."""
    return codec.from_document(AgentStart, path.read_bytes(), str(path))


RUN = "run"
SPENT = "spent"  # of no person: the budget's instant is over; else as drain
DRAIN = "drain"  # finish the running cell, then end
STOP = "stop"  # checkpoint, then end now


@dataclass(frozen=True)
class Control:
    FORMAT: ClassVar[str] = "control"
    VERSION: ClassVar[int] = 1

    want: str
    at: str
    extra: dict[str, Any] = field(default_factory=dict)
    # No cell begins after it (the box's clock): what the job's budget lasts for.
    begin_until: str | None = field(default=None, metadata=codec.LATER)


def read_control(path: Path) -> Control:
    """`run` where nobody has asked for anything. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Control(RUN, "")
    return codec.from_document(Control, data, str(path))


def wanted(path: Path) -> str:
    """What a person has asked for. Raises DamagedError."""
    return read_control(path).want
