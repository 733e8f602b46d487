"""What can go wrong, by what the caller should do about it.

Every message says the path or the cell, what was being done, what was expected and found, and
where it helps, the next command to type.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared import exit_codes
from boxcar.shared.message import Command, Message, joined


class BoxcarError(Exception):
    """Base of all errors raised on purpose; `exit_code` is that of the verb that meets it."""

    exit_code = exit_codes.FAILED

    def __init__(
        self, problems: str | Message | Sequence[str | Message], command: Command | None = None
    ) -> None:
        """`command` is what to type next, for a problem that is given as a text."""
        given = [problems] if isinstance(problems, (str, Message)) else problems
        self.messages = tuple(
            Message(problem, command) if isinstance(problem, str) else problem for problem in given
        )
        super().__init__("\n".join(self.problems))

    @property
    def problems(self) -> tuple[str, ...]:
        """The messages as plain text."""
        return tuple(str(message) for message in self.messages)


class InputError(BoxcarError):
    """A person has to fix a file or a command. All problems of one file are listed at once."""

    exit_code = exit_codes.INPUT


class DamagedError(BoxcarError):
    """A file that Boxcar wrote is not as it was written. It is kept as it is; a person decides."""


class NewerError(DamagedError):
    """A newer Boxcar wrote the file, and this one cannot read it. It is not damaged, but whoever
    meets it does the same: keeps it as it is, and decides nothing by it.
    """


class TemporaryError(BoxcarError):
    """The same call may succeed later: a lock that is held, a tier that does not answer."""

    exit_code = exit_codes.TEMPORARY


class NoRoomError(BoxcarError):
    """A disk has too few bytes or inodes left. Nothing was written under a final name."""

    exit_code = exit_codes.NO_ROOM


def message_of(error: Exception) -> Message:
    """What an error says, with the command of its last problem."""
    if isinstance(error, BoxcarError):
        return joined(error.messages, "\n")
    if isinstance(error, OSError) and error.filename and error.strerror:
        return Message(f"{error.filename}: {error.strerror}")
    return Message(str(error))
