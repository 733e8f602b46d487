"""What verbs need to know of the place where a run's boxes are.

A third kind of place is a folder beside `local` and `ssh` with a `Site` of its own, and a row in
`open_site.SITES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from boxcar.laptop.common import side_by_side
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.run.log_source import LogSource
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import OnBoxes
from boxcar.laptop.tensorboard import shown
from boxcar.laptop.tensorboard.shown import Place
from boxcar.shared.errors import Command
from boxcar.shared.files.plan import Cell
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.record import dataclass
from boxcar.shared.wire import run_asks

StartedOrWhy = tuple[dict[str, str], dict[str, Exception]]


class Meter(Protocol):
    """What ends a run's costs, by the platform's own verb."""

    fix: ClassVar[Command | str]  # what to do about a problem

    def problems(self) -> list[str]:
        """Why the verb would not be safe, in sentences."""

    def price(self) -> list[str]:
        """What is lost, in sentences."""

    def stays(self) -> list[str]:
        """What is kept beside the results, in sentences."""

    def beside(self, begun: Teardown | None) -> OnBoxes:
        """Who else is on the boxes that are to end, where they are; `begun`: what is done."""

    def stop(self, steps: Steps) -> None:
        """Do what `steps` does not say was done, and write each step down there."""

    def to_do(self) -> str | None:
        """What only the person can do, after it was done."""


@dataclass(frozen=True)
class Site(OpenRun, ABC):
    """An open run at its place. `poll_s` lies between two looks of `watch`.

    `needs_audit`: what the boxes are is to be asked before a run is launched there.
    """

    poll_s: ClassVar[float]
    needs_audit: ClassVar[bool]
    # Whether a start waits for a machine, and takes it from others.
    is_start_scarce: ClassVar[bool] = False

    @property
    @abstractmethod
    def meter(self) -> Meter:
        """What `down` does here."""

    @property
    @abstractmethod
    def has_mounted_tier(self) -> bool:
        """Whether the durable tier is a mount of several boxes: to make it would be no help."""

    @abstractmethod
    def log_of(self, cell: CellView) -> LogSource | None:
        """The cell's own log from wherever it lies now; None where there is none yet."""

    @abstractmethod
    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        """What of the run on these boxes will lie on this machine beside the results, by what it
        is.
        """

    def events_here(self) -> dict[str, Path]:
        """By cell the folder of this machine in which its event files may lie."""
        return {
            cell.name: folder
            for cell in self.plan.cells
            if (folder := shown.with_events(self._cell_folders(cell)))
        }

    def _cell_folders(self, cell: Cell) -> Iterator[Path]:
        yield self.results.cell(cell.name)

    def events_on(self, box: str) -> Place | None:
        """Where they lie on a box that has to be asked for them. Raises BoxcarError."""

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """Start the agents of these queues: by what each was started, and why others were not.

        Where one runs already, or will by itself, it is `run_asks.RUNNING`.
        """
        return side_by_side.each_or_why(
            starts, lambda queue: self.boxes.ask(self.plan.queues[queue], starts[queue]).by
        )

    def judged(self, *, is_thorough: bool = False) -> list[Row] | None:
        """What is wrong with the place, where the boxes cannot be asked before they are given;
        `is_thorough`: it may take a minute.
        """
        return None

    def is_tier_out_of_sight(self) -> bool:
        """Whether a launch would make a second durable tier, because the first is out of sight."""
        return False

    def python(self) -> str:
        """This machine's interpreter for a try of a cell."""
        return training_here.for_training()

    def pulled_log(self, cell: str) -> Path:
        """Where a pull puts the log of a cell; there may be none."""
        published = self.results.cell(cell) / f"{cell}.log"
        return published if published.is_file() else self.results.failed_log(cell)
