"""What a question to a box is, and the run that is meant by each.

A question's class names its answer's class, so who asks gets the right type, and spells the name
that travels. How both become JSON is envelope.py's. The questions stand in *_asks.py beside this
file, each with its answer, so that a reader who changes one side has the other before their eyes.
"""

from __future__ import annotations

import typing
from typing import Any, ClassVar, Generic, TypeVar

from boxcar.shared import paths
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.wire.fields import BoxPath, RunName

A = TypeVar("A")


class Question(Generic[A]):
    """`class Start(Question[Started], name="start")`: the name that travels, and the answer."""

    NAME: ClassVar[str]
    ANSWER: ClassVar[type[Any]]

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        cls.NAME = name
        cls.ANSWER = typing.get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]

    def check(self, answer: A) -> None:
        """Raise ValueError for an answer that is well formed, but none to this question."""


@dataclass(frozen=True)
class RunOnBox:
    """Which run is meant, and where it lies on the box that is asked: in every question."""

    run: RunName
    durable_dir: BoxPath
    data_dir: BoxPath

    @property
    def tier(self) -> DurablePaths:
        return DurablePaths(paths.on_box(self.durable_dir), self.run)

    @property
    def scratch(self) -> ScratchPaths:
        return ScratchPaths(paths.on_box(self.data_dir), self.run)
