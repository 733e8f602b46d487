"""That the deadline of a rented box is near, or off again: for the agent that is at work there.

Written by what holds the deadline, beside the start of a queue; its agent says it and removes it.
"""

from __future__ import annotations

import shlex
from dataclasses import field
from typing import Any, ClassVar

from boxcar.shared.cell import duration
from boxcar.shared.news.wanted import BOX_STAYS, DEADLINE
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _


@dataclass(frozen=True)
class DeadlineNotice:
    """`at`: when the box stops itself (UTC); `is_cap`: because it is `most_s` old, and not because
    nothing has moved there for `quiet_s`. `mark`: the file without which it does not. `is_over`: it
    stays on after all. `answer`: what the provider said to a box that is still here after its end.
    """

    FORMAT: ClassVar[str] = "deadline_notice"
    VERSION: ClassVar[int] = 1

    at: str
    is_cap: bool
    quiet_s: int
    most_s: int
    mark: str
    is_over: bool = False
    answer: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """Of the warning."""
        return DEADLINE if self.answer is None else BOX_STAYS

    def sentence(self, box: str) -> Sentence:
        """What a person is told."""
        if self.answer is not None:
            why = _(
                "it was told to stop, and is still here (the answer: {said})",
                said=self.answer or "-",
            )
            return _("{box} could not stop itself and may still bill: {why}", box=box, why=why)
        if self.is_over:
            return _(
                "{box} stays on: something moves there again, or its deadline was called off",
                box=box,
            )
        if self.is_cap:
            why = _(
                "it has been on for {most}, the most that `up` named, whatever runs",
                most=duration.spell_duration(self.most_s),
            )
        else:
            why = _(
                "no log and no result of a cell there has changed, and its deadline for that is "
                "{quiet}",
                quiet=duration.spell_duration(self.quiet_s),
            )
        return _(
            "{box} stops itself at {at} (UTC): {why}. Its disk stays, and bills. Cells go on from "
            "their checkpoints once you start the box and launch. To keep it on: {command}",
            box=box,
            at=self.at[:16].replace("T", " "),
            why=why,
            command=f"ssh {box} rm {shlex.quote(self.mark)}",
        )
