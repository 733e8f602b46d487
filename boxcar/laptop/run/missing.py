"""What stands between a run and its end: one row of what `verify` and `down` say."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import Command, Message
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Missing:
    """One thing that is not as it has to be, and what fixes it: a command, or else a sentence.

    `cell` is None for what concerns the whole run.
    """

    cell: str | None
    what: str
    command: Command | str

    @property
    def message(self) -> Message:
        if isinstance(self.command, Command):
            return Message(self.what, self.command)
        return Message(Sentence("good_run.what_then", what=self.what, then=self.command))
