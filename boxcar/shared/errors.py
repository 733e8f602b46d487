"""What can go wrong, by what the caller should do about it.

Every message says the path or the cell, what was being done, what was expected and found, and
where it helps, the next command to type.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import (
    Sentence,
    _,
    chained,
    in_language,
    known_word,
    mark,
    quotation,
    said_by,
)

# What is told to a person, as data: a text, and the command to type next.
#
# Only who shows a message spells its command, as `invoke push` or as `boxcar push --job
# other.yaml`. The text passes as it is, because it may hold words of somebody's script or log.


_PROGRAM = ["invoke"]
_COLON = {"en": ": ", "zh": "："}
_NOTE = {"en": " ({})", "zh": "（{}）"}
_OR = {"en": ", or ", "zh": "，或 "}


def type_as(program: str) -> None:
    """From now on commands within texts are those of this program: of the one that was typed, and
    of what an agent writes `boxcar`, because it is read on the laptop.
    """
    _PROGRAM[:] = [program]


def program() -> str:
    """The one that commands within texts are typed as."""
    return _PROGRAM[0]


@dataclass(frozen=True)
class Command:
    """A verb of Boxcar with the words behind it, not quoted: `Command("logs", ("--cell", "a"))`.

    Where there is a choice, `note` says what comes of this command and `or_else` is the other one.
    """

    verb: str
    words: tuple[str, ...] = ()
    note: str = ""
    or_else: Command | None = None

    def typed(
        self, program: str = "", flags: Sequence[tuple[str, str]] = (), language: str = "en"
    ) -> str:
        """As a shell takes it, with those `flags` that are not among its own words."""
        named = [word for flag in flags if flag[0] not in self.words for word in flag]
        line = shlex.join([program or _PROGRAM[0], self.verb, *named, *self.words])
        line += _NOTE[language].format(in_language(self.note, language)) if self.note else ""
        if self.or_else is None:
            return line
        return f"{line}{_OR[language]}{self.or_else.typed(program, flags, language)}"

    def __str__(self) -> str:
        return self.typed()


@dataclass(frozen=True)
class Message:
    """One sentence or more; the last one leads to the command: `Send it again` and `push`."""

    text: str
    command: Command | None = None

    def under(self, head: str) -> Message:
        """The same, said of something: a box, a queue, a file."""
        if isinstance(self.text, Sentence) or isinstance(head, Sentence):
            return Message(_("{head}: {text}", head=head, text=self.text), self.command)
        return Message(f"{head}: {self.text}", self.command)

    def typed(
        self, program: str = "", flags: Sequence[tuple[str, str]] = (), language: str = "en"
    ) -> str:
        """The text, and the command as it is typed here."""
        text: str = in_language(self.text, language)
        if self.command is None:
            return text
        # A text that is in no other language keeps its own colon.
        colon = _COLON[language if hasattr(self.text, "said") else "en"]
        colon = {"?": " ", "？": ""}.get(text[-1:], colon)  # a question leads to it by itself
        return f"{text}{colon}{self.command.typed(program, flags, language)}"

    def said(self, language: str) -> str:
        """As a field of a sentence."""
        return self.typed(language=language)

    def __str__(self) -> str:
        return self.typed()


SEMICOLON, LINE = mark("{first}; {second}"), mark("{first}\n{second}")


def joined(messages: Sequence[Message], by: str) -> Message:
    """One message of several, by SEMICOLON or LINE, with the command of the last; those before it
    become text.
    """
    *before, last = messages
    if not before:
        return last
    return Message(chained(by, [*before, last.text]), last.command)


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 cell`, `3 cells`, `2 boxes`; `several` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def some(names: Iterable[str], most: int) -> str:
    """`a, b and 3 more`: the first of them, for people."""
    listed = list(names)
    first, more = ", ".join(listed[:most]), len(listed) - most
    return _("{names} and {n:,} more", names=first, n=more) if more > 0 else first


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

    def said(self, language: str) -> str:
        """All of it in this language, also where it is a field of a sentence."""
        return "\n".join(message.typed(language=language) for message in self.messages)


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


class MayStillBillError(TemporaryError):
    """Boxcar's own part of the end of a box is done, and nobody saw its meter end."""


class DivergedError(BoxcarError):
    """A training's loss or gradient is no finite number; the same command would end here again."""

    exit_code = exit_codes.NO_RETRY


class NoRoomError(BoxcarError):
    """A disk has too few bytes or inodes left. Nothing was written under a final name."""

    exit_code = exit_codes.NO_ROOM


def message_of(error: BaseException) -> Message:
    """What an error says, with the command of its last problem."""
    if isinstance(error, BoxcarError):
        return joined(error.messages, LINE)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return Message(_("{head}: {text}", head=error.filename, text=reason_of(error)))
    return Message(said_by(error))


def words_of(error: BaseException) -> str:
    """All that an error says in one sentence, with the command of its last problem."""
    message = message_of(error)
    if message.command is None:
        return message.text
    return _("{text}: {command}", text=message.text, command=str(message.command))


# As the C library says them.
_REASONS = frozenset(
    {
        mark("Connection refused"),
        mark("Disk quota exceeded"),
        mark("Exec format error"),
        mark("File exists"),
        mark("File name too long"),
        mark("Input/output error"),
        mark("Is a directory"),
        mark("No space left on device"),
        mark("No such file or directory"),
        mark("Not a directory"),
        mark("Operation not permitted"),
        mark("Permission denied"),
        mark("Read-only file system"),
        mark("Stale file handle"),
        mark("Too many open files"),
    }
)


def reason_of(error: BaseException) -> str:
    """Why the system refused, without the path; what it says rarely, or of no file, is quoted."""
    reason = getattr(error, "strerror", None) or said_by(error)
    if isinstance(reason, Sentence):
        return reason
    return known_word(reason, _REASONS) if reason in _REASONS else quotation(reason)
