"""What people see. Results go to stdout; notes, progress and questions go to stderr.

With `--json` a verb writes one document to stdout through `json_document` (or one in each line,
through `json_line`) and no table, so that its output can always be piped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from boxcar.laptop.common import documents
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.plain import plain
from boxcar.laptop.common.units import four_digits
from boxcar.shared.catalogue.sentence import in_language
from boxcar.shared.message import Command, Message

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

# Columns: nothing is wrapped for a program that reads it, however long a path is.
_IN_A_PIPE = 1_000_000
# The flags that were typed and that the next command needs as well, such as `--profile autodl`.
_flags: list[tuple[str, str]] = []
# Where a sign of life is drawn, while there is one.
_waiting: list[Console] = []
# Whether this verb's whole document is on stdout: a second one would be no JSON.
_has_document: list[bool] = []


def begin() -> None:
    """A verb begins: nothing of it is printed yet."""
    _has_document.clear()


def say(message: str | Message) -> None:
    """A note for the person, on stderr."""
    console = _waiting[0] if _waiting else _console(stderr=True)
    console.print(Text(plain(typed(message))), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout. In a pipe each row is one line, however long."""
    console = _console(stderr=False)
    if console.is_terminal:
        console.print(draw(title, columns, rows), "")
        return
    with console.capture() as drawn:
        console.print(draw(title, columns, rows), "")
    # A table fills its last column with spaces, up to the longest path in it.
    lines = (line.rstrip() for line in drawn.get().split("\n"))
    print("\n".join(lines), end="", flush=True)


def draw(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table, not yet printed: `watch` redraws it in place."""
    # Late, here and below: most verbs print no table, and most are typed where no bar is drawn.
    from rich.table import Table

    drawn = Table(
        title=Text(plain(title), style="bold"), title_justify="left", pad_edge=False, box=None
    )
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(_field(value) for value in row))
    return drawn


def line(message: str | Message) -> None:
    """A line of a result, on stdout."""
    print(plain(typed(message)), flush=True)


def typed(what: object) -> str:
    """As text in this person's language; a command as they have to type it, with the flags that
    were given.
    """
    language = language_of("", os.environ)
    if not isinstance(what, (Message, Command)):
        return in_language(what, language) if isinstance(what, str) else str(what)
    program = "boxcar" if Path(sys.argv[0]).name == "boxcar" else "invoke"
    return what.typed(program, _flags, language)


def remember_flags(profile: str, job: str) -> None:
    """What was typed to name the run belongs to every command that is suggested later."""
    given = (("--profile", profile), ("--job", job))
    _flags[:] = [(name, value) for name, value in given if value]


def _field(value: object) -> Text:
    """One field of a table: `-` where there is nothing to say, four digits of a fraction."""
    if value is None or value == "":
        return Text("-")
    if isinstance(value, float):
        return Text(four_digits(value))
    return Text(plain(typed(value)))


def json_document(verb: str, value: Any) -> None:
    """What this verb found, as its one JSON document on stdout."""
    _print_document(documents.of_verb(verb, value))


def json_line(verb: str, value: Any) -> None:
    """The same in one line, for a verb that prints one after the other."""
    _print_document(documents.of_verb(verb, value), is_line=True)


def json_error(verb: str, exit_code: int, messages: Sequence[Message]) -> None:
    """Why a verb ended, where it has printed no document that says so. One line, because it may be
    the last one of several.
    """
    if not _has_document:
        _print_document(documents.of_error(verb, exit_code, messages), is_line=True)


def _print_document(document: dict[str, Any], *, is_line: bool = False) -> None:
    _has_document[:] = [] if is_line else [True]
    print(documents.as_text(document, is_line=is_line), flush=True)


def ask(prompt: str) -> str:
    """What the person types; '' where nobody is there to type."""
    print(plain(prompt), end="", file=sys.stderr, flush=True)
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        print(file=sys.stderr)  # nobody has ended the line of the question
    return typed.strip()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A sign of life on stderr while others are asked; what is said meanwhile goes above it."""
    if _waiting or not sys.stderr.isatty():
        yield
        return
    _waiting.append(_console(stderr=True))
    try:
        with _waiting[0].status(Text(plain(text))):
            yield
    finally:
        _waiting.clear()


def progress() -> Progress:
    """A progress display on stderr, for whatever takes longer than two seconds."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        console=_console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


@contextmanager
def said_above(bar: Progress) -> Iterator[None]:
    """What is said while this display is drawn goes above it, and leaves no line of it behind."""
    if _waiting or bar.disable:
        yield
        return
    _waiting.append(bar.console)
    try:
        yield
    finally:
        _waiting.clear()


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else _IN_A_PIPE)
