"""A run and its boxes, open for as long as a verb works with them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from boxcar.laptop.hosts.boxes import Boxes
from boxcar.laptop.project.project import Project
from boxcar.shared.errors import Message
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ResultPaths
from boxcar.shared.record import dataclass

# How a noun is heard while it works: the verb that called it says it to the person.
Tell = Callable[[str | Message], None]
AnOpenRun = TypeVar("AnOpenRun", bound="OpenRun")


@dataclass(frozen=True)
class OpenRun:
    """`with` closes what the boxes hold open, such as connections."""

    project: Project
    boxes: Boxes

    @property
    def plan(self) -> Plan:
        return self.project.plan

    @property
    def results(self) -> ResultPaths:
        return self.project.results

    @property
    def tier(self) -> DurablePaths:
        """The durable tier as the laptop reads it: itself, or the mirror of what boxes reported."""
        return self.boxes.tier

    def __enter__(self: AnOpenRun) -> AnOpenRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.boxes.close()
