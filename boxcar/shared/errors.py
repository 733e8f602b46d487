"""What can go wrong, by what the caller should do about it.

Every message says the path or the cell, what was being done, what was expected and observed, and
where it helps, the next command to type.
"""

from __future__ import annotations

from collections.abc import Sequence


class BoxcarError(Exception):
    """Base of all errors raised on purpose; `exit_code` is that of the verb that meets it."""

    exit_code = 1


class InputError(BoxcarError):
    """A person has to mend a file or a command. All problems of one file are listed at once."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class DamagedError(BoxcarError):
    """A file that Boxcar wrote is not as it was written. It is kept as it is; a person decides."""


class TemporaryError(BoxcarError):
    """The same call may succeed later: a lock that is held, a tier that does not answer."""

    exit_code = 75


class NoRoomError(BoxcarError):
    """A disk has too few bytes or inodes left. Nothing was written under a final name."""

    exit_code = 3
