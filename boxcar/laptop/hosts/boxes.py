"""The boxes of a run, and the durable tier behind them: what the laptop does to them, in two twins.

`LocalBoxes` are folders on this machine, read directly. `SshBoxes` are reached over ssh, and what
they hold is read from the mirror of their last report. Whatever changes something on a box is asked
of `onbox answer` there, on both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.shared.paths import DurablePaths
from boxcar.shared.wire.question import A, Question

ASK_TIMEOUT_S = 60.0


class Boxes(Protocol):
    """Every method takes the names of the plan. All may raise TemporaryError and OSError."""

    tick_s: float  # between two looks of a command that waits for something

    @property
    def tier(self) -> DurablePaths:
        """The durable tier as the laptop reads it."""

    def label(self, box: str) -> str:
        """The box as it is shown to a person who may mean another one of this name."""

    def refresh(self, *, is_exact: bool = False) -> None:
        """Ask every box once what it holds. A box that does not answer is silent, no error.

        `is_exact`: nor is what a scheduler has said a moment ago believed.
        """

    def give_up(self, names: Iterable[str]) -> None:
        """Ask these boxes no more: a person says that they are gone for good. The durable tier is
        named by its path, as the plan spells it. Raises InputError for what is there.
        """

    def is_gone(self, name: str) -> bool:
        """Whether a person has said that it will never answer again."""

    def seen_at(self, box: str) -> str | None:
        """When the box last answered, by the laptop's clock (UTC), where that is kept."""

    def silent(self) -> dict[str, str]:
        """The boxes that did not answer the last refresh, and why."""

    def doubts(self) -> list[str]:
        """Why what is known of the tier may not be all, in sentences."""

    def tier_doubts(self) -> list[str]:
        """Those of them that a durable tier leaves which is out of sight where it should be."""

    def has_lost_its_tier(self, box: str) -> bool:
        """Whether the box answers, and on the tier that it alone has nothing is left of the run."""

    def is_agent_alive(self, queue: str) -> bool | None:
        """Whether somebody holds the queue's lock; None where nobody can tell."""

    def scheduled(self, queue: str) -> Scheduled | None:
        """That a scheduler is to start the queue's agent, where there is one and it has not yet."""

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Take back what a scheduler has not started of these queues: its tasks."""

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        """Whether an attempt at the cell runs on the box; None where nobody can tell."""

    def progress_at(self, box: str, cell: str) -> str | None:
        """When the running cell last wrote its progress file (UTC), if that is known."""

    def listing_age_s(self, box: str) -> float:
        """For how long what `box` has written may still be unseen where the tier is listed."""

    def clock_ahead_s(self, box: str) -> float:
        """How far the box's clock is ahead of the laptop's, in seconds."""

    def ask(self, box: str, question: Question[A], *, timeout_s: float = ASK_TIMEOUT_S) -> A:
        """What `onbox answer` says on the box. Raises what it raised there, as the same class;
        DamagedError for an answer that is not as expected, TemporaryError where there was none.
        """

    def tiers(self, boxes: Sequence[str]) -> list[str]:
        """For each durable tier of these boxes one box to reach it by: one where it is shared."""

    def place(self, box: str, path: str) -> Path | Remote:
        """A path on the box, as transport takes it."""

    def cell_at(self, cell: str) -> Path | Remote:
        """The published folder of the cell."""

    def kept(self, name: str) -> list[Path]:
        """Copies of a control file, by its path below the run's folder, as it was reported before
        it changed otherwise than by growing. They prove nothing by themselves.
        """

    def forget(self) -> None:
        """Drop what is kept of the boxes' files, because the run was torn down."""

    def close(self) -> None:
        """End what is held open."""
