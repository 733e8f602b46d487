"""A run and its boxes, open for as long as a verb works with them: what every place answers.

Where boxes are folders of this machine the durable tier is read as it lies; elsewhere from the
mirror of what they reported last. Whatever changes something on a box is asked of `onbox answer`
there, on all alike. What is not abstract here is as on this machine, and where nothing is special.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.scheduled import JobEnd, Scheduled
from boxcar.laptop.project.project import Project
from boxcar.shared.errors import Message
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ResultPaths
from boxcar.shared.wire import envelope, run_asks
from boxcar.shared.wire.envelope import Replies
from boxcar.shared.wire.question import A, Question, RunOnBox

# How a noun is heard while it works: the verb that called it says it to the person.
Tell = Callable[[str | Message], None]
AnOpenRun = TypeVar("AnOpenRun", bound="OpenRun")
# Sleeps; gives True where nobody wants to wait any more.
Pause = Callable[[float], object]
ASK_TIMEOUT_S = 60.0


class OpenRun(ABC):
    """`with` closes what is held open, such as connections.

    Every method takes the names of the plan. All may raise TemporaryError and OSError.
    """

    tick_s: ClassVar[float]  # between two looks of a command that waits for something

    def __init__(self, project: Project, tell: Tell) -> None:
        """`tell` hears what happens while boxes are asked. Nothing is asked yet."""
        self.project, self.tell = project, tell
        self._gone: set[str] = set()

    @property
    def plan(self) -> Plan:
        return self.project.plan

    @property
    def results(self) -> ResultPaths:
        return self.project.results

    def is_planned(self, box: str) -> bool:
        """Whether the plan still has the box, so that it can be asked."""
        return any(known.name == box for known in self.plan.boxes)

    def queues_on(self, box: str) -> tuple[str, ...]:
        return tuple(queue for queue, at in self.plan.queues.items() if at == box)

    # --- what is known

    @property
    @abstractmethod
    def tier(self) -> DurablePaths:
        """The durable tier as the laptop reads it: itself, or the mirror of what boxes reported."""

    @abstractmethod
    def box_label(self, box: str) -> str:
        """The box as it is shown to a person who may mean another one of this name."""

    def refresh(self, *, is_exact: bool = False) -> None:  # noqa: B027
        """Ask every box once what it holds. A box that does not answer is silent, no error. One
        that is to tell when it has news, and has told none, is not asked.

        `is_exact`: it is, nor is what a scheduler has said a moment ago believed.
        """

    def await_news(self, otherwise_s: float, most_s: float, pause: Pause = time.sleep) -> object:
        """Return once a box has news, or after `most_s`; after `otherwise_s` where no box can tell.

        `pause` is given seconds. What it gives is returned, at once where that is True.
        """
        return pause(otherwise_s)

    @abstractmethod
    def give_up_boxes(self, names: Iterable[str]) -> None:
        """Ask these boxes no more: a person says that they are gone for good. The durable tier is
        named by its path, as the plan spells it. Raises InputError for what is there.
        """

    def is_gone(self, name: str) -> bool:
        """Whether a person has said that it will never answer again."""
        return name in self._gone

    def seen_at(self, box: str) -> str | None:
        """When the box last answered, by the laptop's clock (UTC), where that is kept."""
        return None

    def silent_boxes(self) -> dict[str, str]:
        """The boxes that did not answer the last refresh, and why."""
        return {}

    def is_out_of_reach(self, box: str) -> bool:
        """Whether it did not answer the last refresh, or will never answer again."""
        return box in self.silent_boxes() or box in self._gone

    def doubts(self) -> list[str]:
        """Why what is known of the tier may not be all, in sentences."""
        return self.tier_doubts()

    @abstractmethod
    def tier_doubts(self) -> list[str]:
        """Those of them that a durable tier leaves which is out of sight where it should be."""

    def has_lost_its_tier(self, box: str) -> bool:
        """Whether the box answers, and on the tier that it alone has nothing is left of the run."""
        return False

    @abstractmethod
    def is_agent_alive(self, queue: str) -> bool | None:
        """Whether somebody holds the queue's lock; None where nobody can tell."""

    def scheduled(self, queue: str) -> Scheduled | None:
        """That a scheduler is to start the queue's agent, where there is one and it has not yet."""
        return None

    def waiting_beside(self, queue: str) -> tuple[str, ...]:
        """Where its cells run on several machines that a scheduler gives: which has not begun, and
        why; one sentence each.
        """
        return ()

    @abstractmethod
    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        """Whether an attempt at the cell runs on the box; None where nobody can tell."""

    def has_output(self, box: str, cell: str) -> bool:
        """Whether the attempt has begun: its wrapper has set the stage and written a first line."""
        question = run_asks.ReadLog(None, lines=1, most_bytes=4096, cell=cell)
        return bool(self.ask(box, question).size_bytes)

    def agent_log(self, box: str, queue: str, lines: int) -> str:
        """The last lines that the queue's agent printed. Raises as `ask`."""
        question = run_asks.ReadLog(None, lines, most_bytes=64 * 1024, queue=queue)
        return self.ask(box, question).data.decode("utf-8", "replace").strip()

    def progress_at(self, box: str, cell: str) -> str | None:
        """When the running cell last wrote its progress file (UTC), if that is known."""
        return None

    def listing_age_s(self, box: str) -> float:
        """For how long what `box` has written may still be unseen where the tier is listed."""
        return 0.0

    def clock_ahead_s(self, box: str) -> float:
        """How far the box's clock is ahead of the laptop's, in seconds."""
        return 0.0

    def kept_copies(self, name: str) -> list[Path]:
        """Copies of a control file, by its path below the run's folder, as it was reported before
        it changed otherwise than by growing. They prove nothing by themselves.
        """
        return []

    # --- what is done

    @abstractmethod
    def ask(self, box: str, question: Question[A], *, timeout_s: float = ASK_TIMEOUT_S) -> A:
        """What `onbox answer` says on the box. Raises what it raised there, as the same class;
        DamagedError for an answer that is not as expected, TemporaryError where there was none.
        """

    def ask_all(
        self, box: str, *questions: Question[Any], timeout_s: float = ASK_TIMEOUT_S
    ) -> Replies:
        """Put several questions in one round trip: they are answered in order, up to the first that
        goes wrong. Raises where none of them was answered.
        """
        answers = self.ask(box, envelope.several(questions), timeout_s=timeout_s)
        return Replies(self.who_answers(box), questions, answers)

    def who_answers(self, box: str) -> str:
        """How the one who answers for this box is named where something goes wrong."""
        return box

    def left_waiting(self) -> list[str]:
        """The members of pools that are in the plan no more, and that a scheduler is to start."""
        return []

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Take back what a scheduler has not started of these queues: its tasks."""
        return ()

    def ends(self, queue: str) -> tuple[JobEnd, ...]:
        """How a scheduler says that the queue's agents ended, as far as it still knows."""
        return ()

    def has_ended(self, queue: str) -> bool:
        """Whether a scheduler proves that the queue's agent has ended and that it starts none."""
        return False

    @abstractmethod
    def reach_tiers(self, boxes: Sequence[str]) -> list[str]:
        """For each durable tier of these boxes one box to reach it by: one where it is shared."""

    @abstractmethod
    def folder_on(self, box: str, path: str) -> Path | Remote:
        """A path on the box, as folders travel to and from it."""

    @abstractmethod
    def published_folder(self, cell: str) -> Path | Remote:
        """The cell's on the durable tier."""

    def forget_boxes(self) -> None:  # noqa: B027
        """Drop what is kept of the boxes' files, because the run was torn down."""

    def close(self) -> None:  # noqa: B027
        """End what is held open."""

    def __enter__(self: AnOpenRun) -> AnOpenRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run_on(self, box: str) -> RunOnBox:
        return RunOnBox(self.plan.run, self.plan.durable_dir, self.plan.box(box).data_dir)
