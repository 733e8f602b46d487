"""What verbs need to know of the place where a run's boxes are.

Another kind of place is a `Site` of its own here, and a row in `open_site.SITES`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.run.log_source import LogSource
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import OnBoxes
from boxcar.laptop.tensorboard import shown
from boxcar.laptop.tensorboard.shown import Place
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files.plan import Cell
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks

StartedOrWhy = tuple[dict[str, str], dict[str, Exception]]


class Site(OpenRun):
    """An open run at its place."""

    poll_s: ClassVar[float]  # between two looks of `watch`
    # What the boxes are is to be asked before a run is launched there.
    needs_audit: ClassVar[bool] = True
    # Whether the members of a pool take over what one of them has begun whose end they can prove.
    agents_see_ends: ClassVar[bool] = False
    # What to do about one of `end_problems`.
    end_fix: ClassVar[Command | str]

    @property
    def launch_command(self) -> Command | None:
        """What is typed in place of `launch`, where no program of ours reaches the boxes."""
        return None

    def refuse_launch(self) -> None:
        """Raise InputError with what to do instead, where no program of ours reaches the boxes."""

    def bring(self, folder: Path) -> None:
        """Take over what a box has left, from a folder that a person downloaded. Raises InputError
        where boxes are asked for it.
        """
        raise InputError(
            Message(
                _("--from is for platforms without ssh. The boxes of this run are asked"),
                Command("pull"),
            )
        )

    @property
    def has_mounted_tier(self) -> bool:
        """Whether the durable tier is a mount of several boxes: to make it would be no help."""
        return False

    def is_tier_out_of_sight(self) -> bool:
        """Whether a launch would make a second durable tier, because the first is out of sight."""
        return False

    def judged(self, *, is_thorough: bool = False) -> list[Row] | None:
        """What is wrong with the place, where the boxes cannot be asked before they are given;
        `is_thorough`: it may take a minute.
        """
        return None

    def clear_unlaunched(self) -> None:
        """Take away what was made at the place only to look at a run that was never launched."""

    def start_question(self, start: run_asks.Start) -> run_asks.Start | None:
        """What a queue's own box is asked to start its agent; None where `start` does it."""
        return start

    @property
    def launch_place(self) -> Mapping[str, str]:
        """What a launch records of where the run is, beside its profile, by the profile's keys."""
        return {}

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """Start the agents of these queues, which no question to their boxes starts: by what each
        was started, and why others were not. `run_asks.RUNNING` where one runs or will by itself.
        """
        return {}, {}

    def python(self) -> str:
        """This machine's interpreter for a try of a cell."""
        return training_here.for_training()

    # --- logs and files

    @abstractmethod
    def log_of(self, cell: CellView) -> LogSource | None:
        """The cell's own log from wherever it lies now; None where there is none yet."""

    def box_with_log(self, cell: CellView) -> str | None:
        """Which box can be asked for the log of the cell."""
        return cell.box if self.is_planned(cell.box) else None

    def pulled_log(self, cell: str) -> Path:
        """Where a pull puts the log of a cell; there may be none."""
        published = self.results.cell(cell) / f"{cell}.log"
        return published if published.is_file() else self.results.failed_log(cell)

    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        """What of the run on these boxes will lie on this machine beside the results, by what it
        is.
        """
        return {}

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
        return None

    # --- what ends the run's costs: the platform's own verb

    def end_problems(self) -> list[str]:
        """Why the verb would not be safe, in sentences: a box that does not answer may hold what
        nobody has seen.
        """
        return self.doubts()

    @abstractmethod
    def end_price(self) -> list[str]:
        """What is lost, in sentences."""

    def end_keeps(self) -> list[str]:
        """What is kept beside the results, in sentences."""
        return []

    def others_on_boxes(self, begun: Teardown | None) -> OnBoxes:
        """Who else is on the boxes that are to end; `begun`: what is done. Nobody where no box is
        ended: what is others' stays as it is.
        """
        return OnBoxes()

    def to_destroy(self, begun: Teardown | None) -> dict[str, str]:
        """By box the platform's id of those that Boxcar itself can end for good, which a person has
        to type; `begun`: what is done.
        """
        return {}

    @abstractmethod
    def end_boxes(self, steps: Steps) -> None:
        """Do what `steps` does not say was done, and write each step down there."""
