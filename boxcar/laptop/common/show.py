"""What people see. Results go to stdout; notes, progress and questions go to stderr.

With `--json` a verb writes one document to stdout through `json_document` (or one in each line,
through `json_line`) and no table, so that its output can always be piped.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from boxcar.laptop.common import documents
from boxcar.laptop.common.headings import heading
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.progress import BYTES, NowAndThen, Progress
from boxcar.laptop.common.text_layout import NOTHING, narrow_table, plain, table_rows, wrap_text
from boxcar.laptop.common.units import duration, four_digits
from boxcar.shared.errors import Command, Message, some
from boxcar.shared.sentence import Sentence, _, in_language
from boxcar.shared.text_width import short_name

if TYPE_CHECKING:
    from rich.console import Console


# Columns: nothing is wrapped for a program that reads it, however long a path is.
_IN_A_PIPE = 1_000_000
# The flags that were typed and that the next command needs as well, such as `--profile autodl`.
_flags: list[tuple[str, str]] = []
_program: list[str] = []
# What moves on stderr: the last one is seen, and those before it wait for its end. What is said
# meanwhile goes above it, so it is said to the same console.
_moving: list[_Moving] = []
# The one that was asked for; else the locale's.
_language: list[str] = []
# Whether this verb's whole document is on stdout: a second one would be no JSON.
_has_document: list[bool] = []
# A verb prints so many lines on a terminal unless --all is typed. Its last notes, such as the next
# command, are always printed.
MOST_LINES, _LAST_WORDS, _FEWEST = 40, 12, 5
# Which command shows all, where not all is shown, and how many lines are left.
_all: list[bool] = []
_rest: list[Command] = []
_left = [MOST_LINES]
# The same note on more cells than this is printed once; a list of cells has so many names.
ALIKE, _NAMED = 3, 5
_NAME_ROOM = 24
# A sentence with this field is said of so many cells: `{cells:is|are} not published`.
SAID_OF = "cells"
_Note = tuple[str, Message]


def begin() -> None:
    """A verb begins: nothing of it is printed yet."""
    _has_document.clear()
    _language.clear()
    _all.clear()
    _rest.clear()


def speak(language: str) -> None:
    """For the rest of this verb, where one is named. Raises InputError for an unknown one."""
    _language[:] = [language_of(language, os.environ)]


def language() -> str:
    """What this person reads."""
    return language_of(next(iter(_language), ""), os.environ)


class _Moving(Protocol):
    """Something of rich that is drawn anew all the time, or a line now and then in a log."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


def say(message: str | Message) -> None:
    """A note for the person, on stderr. On a terminal it is wrapped at words."""
    quote(_fitted(message))


def alarm(message: str | Message) -> None:
    """A note that must not be overlooked: in red, where there are colours."""
    quote(_fitted(message), look="red")


def _fitted(message: str | Message) -> str:
    text = plain(typed(message))
    if not sys.stderr.isatty():
        return text
    lines = wrap_text(text, _stderr().width)
    _left[0] -= len(lines)
    return "\n".join(lines)


def quote(line: str, *, look: str = "") -> None:
    """A note as a script or a shell has it: never wrapped, so that it can be copied. `look` is a
    style of rich.
    """
    if sys.stderr.isatty():
        _stderr().out(plain(line), highlight=False, style=look or None)
    else:
        _write_note(f"{plain(line)}\n")


def _write_note(text: str) -> None:
    """In one call: threads say things, too. A note that nobody can read is no error: what a verb
    does, and how it ends, must not depend on it.
    """
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def shorten(rest: Command, *, is_all: bool = False) -> None:
    """For the rest of this verb: not more than MOST_LINES on a terminal, and `rest` shows all; but
    all where `is_all`.
    """
    _all[:], _rest[:], _left[:] = [is_all], [] if is_all else [rest], [MOST_LINES]


def shows_all() -> bool:
    """Whether somebody asked for it."""
    return any(_all)


def is_shortened() -> bool:
    """Whether notes are: a terminal shows them, and not all was asked for."""
    return bool(_rest) and sys.stderr.isatty()


def say_of_each(said: Iterable[tuple[str, str | Message]]) -> None:
    """Notes, each on a cell by its name, or on nothing by ''. On a terminal what is the same of
    many cells is one note, and there are no more than have room.
    """
    notes = [(name, text if isinstance(text, Message) else Message(text)) for name, text in said]
    is_short = is_shortened()
    groups = _alike(notes) if is_short else [[one] for one in notes]
    told = [_of_all(group) for group in groups]
    shown = len(told)
    if is_short:
        width = _stderr().width
        shown = _how_many([len(wrap_text(plain(typed(one)), width)) for one in told])
    for one in told[:shown]:
        say(one)
    if hidden := sum(map(len, groups[shown:])):
        say(_more(hidden, _stderr()))


def _alike(notes: Sequence[_Note]) -> list[list[_Note]]:
    found: dict[object, list[_Note]] = {}
    for name, message in notes:
        key = _without_name(typed(message), name) if name else len(found)
        found.setdefault(key, []).append((name, message))
    groups: list[list[_Note]] = []
    for group in found.values():
        groups += [group] if len(group) > ALIKE else [[one] for one in group]
    return groups


def _without_name(text: str, name: str) -> str:
    """So that what is said of one cell can be compared with what is said of another."""
    before, *parts = text.split(name)
    for part in parts:
        is_word = not (before[-1:].isalnum() or part[:1].isalnum())
        before += ("\0" if is_word else name) + part
    return before


def _of_all(group: Sequence[_Note]) -> Message:
    name, message = group[0]
    if len(group) == 1:
        return said_of(name, message) if name else message
    n, mark = len(group), _mark(_stderr().encoding)
    names = some([short_name(name, _NAME_ROOM, mark) for name, _message in group], ALIKE)
    return said_of(_("{n} cells ({names})", n=n, names=names), message, n)


def said_of(who: str, message: Message, n: int = 1) -> Message:
    """`a is not published`, or where the message does not go on from its subject, `a: no such
    file`.
    """
    text = message.text
    if not (isinstance(text, Sentence) and SAID_OF in text.fields):
        return message.under(who)
    of_all = Sentence(text.template, **text.fields | {SAID_OF: n})
    return Message(_("{cells} {text}", cells=who, text=of_all), message.command)


def listed(cells: Sequence[str]) -> str:
    """All of them, or on a terminal the first ones and how many more there are."""
    return some(cells, _NAMED if is_shortened() else len(cells))


def _how_many(heights: Sequence[int], around: int = 0) -> int:
    """Of things of so many lines: all, or those for which half of the lines that are left have
    room, with `around` others and one that counts the rest.
    """
    if not _rest or sum(heights) + around <= _left[0] - _LAST_WORDS:
        return len(heights)
    room, shown = max(_FEWEST, _left[0] // 2) - around - 1, 0
    while shown < len(heights) and heights[shown] <= room:
        room -= heights[shown]
        shown += 1
    return max(1, shown)


def _more(n: int, console: Console) -> str:
    """That `n` are not shown, and the command that shows all."""
    return f"{_mark(console.encoding)} {typed(Message(_('{n} more', n=n), _rest[0]))}"


def table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    is_in_language: bool = False,
    names: Sequence[str] = ("cell",),
    first_to_go: Sequence[str] = (),
    bold: str = "",
) -> None:
    """A table on stdout, none without rows. In a pipe each row is one line, however long.

    On a terminal that is too narrow the columns `names` are shortened in their middle, and those
    of `first_to_go` are left out before others, and what stands before the sign `bold` is bold.
    `is_in_language`: its titles are in the language that was asked for already.
    """
    if not rows:
        return
    heads = list(columns) if is_in_language else [heading(column) for column in columns]
    title = plain(typed(title if is_in_language else heading(title))).rstrip()
    is_drawn = sys.stdout.isatty()
    many = [1] * len(rows)
    if is_drawn and _rest:
        if columns[0] == "cell" and len(rows) > MOST_LINES:
            rows, many = _alike_in_one_row(rows)
        rows = rows[:MOST_LINES]
    values = zip(*rows, strict=True)
    whole = [[typed(head), *_column(one)] for head, one in zip(heads, values, strict=True)]
    if not is_drawn:
        print("\n".join([title, *table_rows(whole), "", ""]), end="", flush=True)
        return
    console = _console(stderr=False)
    at = {column: number for number, column in enumerate(columns)}
    fitted = narrow_table(
        whole,
        console.width,
        names=[at[name] for name in names if name in at],
        first_to_go=[at[name] for name in first_to_go if name in at],
        mark=_mark(console.encoding),
    )
    left_out = [
        column[0]
        for number, column in enumerate(whole)
        if number not in fitted and {*column[1:]} != {NOTHING}
    ]
    _draw(console, title, [*table_rows([*fitted.values()])], left_out, many, bold=bold)


def _alike_in_one_row(
    rows: Sequence[Sequence[object]],
) -> tuple[list[Sequence[object]], list[int]]:
    """Where a table says the same of many cells, that is one row; and how many each row is."""
    alike: dict[object, list[Sequence[object]]] = {}
    for row in rows:
        alike.setdefault((*row[1:],), []).append(row)
    found: list[Sequence[object]] = []
    many: list[int] = []
    for those in alike.values():
        n = len(those)
        is_one = n > ALIKE
        found += [(_("{n} cells", n=n), *those[0][1:])] if is_one else those
        many += [n] if is_one else [1] * n
    return found, many


def _draw(
    console: Console,
    title: str,
    rows: Sequence[str],
    left_out: Sequence[str],
    many: Sequence[int],
    *,
    bold: str,
) -> None:
    """The rows for which there is room, below a head, and what had none. `many`: of how many things
    each row is, also of those that are not here.
    """
    from rich.text import Text

    head, *rows = rows
    heights = [row.count("\n") + 1 for row in rows] + [1] * (len(many) - len(rows))
    around = head.count("\n") + 3 + bool(left_out)
    shown = _how_many(heights, around)
    parts = [Text(title, style="bold"), Text(head, style="bold"), *map(Text, rows[:shown])]
    for part in parts[2:] if bold else ():
        part.highlight_regex(rf"\S+ {bold}", "bold")
    if hidden := sum(many[shown:]):
        parts.append(Text(_more(hidden, console), style="dim"))
    if left_out:
        parts.append(Text(_no_room(left_out, console), style="dim"))
    console.print(Text("\n").join([*parts, Text()]), soft_wrap=True)
    _left[0] -= sum(heights[:shown]) + around


def _no_room(columns: Sequence[str], console: Console) -> str:
    """Which columns are not there. In a pipe all are, and `less -S` goes to the right."""
    said: str = _("no room for {columns}", columns=", ".join(columns))
    if _rest:
        said = _("{text}: {command}", text=said, command=f"{typed(_rest[0])} | less -S")
    return f"{_mark(console.encoding)} {typed(said)}"


def _column(values: Sequence[Any]) -> list[str]:
    """The fields of one column, of a hundred thousand cells as fast as the interpreter can."""
    kinds = {*map(type, values)}
    if kinds <= {str, type(None)}:
        text = "".join(filter(None, values))
        if plain(text) is text:  # as nearly all is
            return [value or NOTHING for value in values]
    # Most have a state that another has too; the rows hold it, so that no other gets its place.
    known: dict[int, str] = {}
    for value in values:
        if id(value) not in known:
            known[id(value)] = _field(value)
    return [known[id(value)] for value in values]


def _mark(encoding: str) -> str:
    """What stands where a name was shortened, if the terminal can show it."""
    try:
        "…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "~"
    return "…"


def line(message: str | Message) -> None:
    """A line of a result, on stdout. On a terminal it is wrapped at words, as a note is."""
    text = plain(typed(message))
    is_wrapped = sys.stdout.isatty()
    lines = wrap_text(text, _console(stderr=False).width) if is_wrapped else [text]
    print("\n".join(lines), flush=True)


def verbatim(text: str) -> None:
    """Lines of a file, on stdout: never wrapped, so that they can be copied."""
    print(plain(text), flush=True)


def page(text: str) -> None:
    """Markdown on stdout: laid out on a terminal, in a pipe as it is."""
    if not sys.stdout.isatty():
        verbatim(text.rstrip())
        return
    from rich.markdown import Markdown

    _console(stderr=False).print(Markdown(plain(text)))


def typed(what: object) -> str:
    """As text in this person's language; a command as they have to type it, with the flags that
    were given.
    """
    if not isinstance(what, (Message, Command)):
        return in_language(what, language()) if isinstance(what, str) else str(what)
    return what.typed(next(iter(_program), ""), _flags, language())


def remember_flags(profile: str, job: str, *, program: str = "") -> None:
    """What was typed to name the run belongs to every command that is suggested later.

    `program` is what to type for `boxcar`, where that is not the name of what runs.
    """
    _program[:] = [program] if program else []
    given = (("--profile", profile), ("--job", job))
    _flags[:] = [(name, value) for name, value in given if value]


def _field(value: object) -> str:
    """One field of a table: `-` where there is nothing to say, four digits of a fraction."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, float):
        return four_digits(value)
    # Most fields are names and numbers: a run may have a million of them.
    if type(value) is int:
        return str(value)
    return plain(value if type(value) is str else typed(value))


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
    print(documents.as_text(document, is_line=is_line, encoding=sys.stdout.encoding), flush=True)


def ask(prompt: str) -> str:
    """What the person types; '' where nobody is there to type."""
    _write_note(plain(typed(prompt)))
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        _write_note("\n")  # nobody has ended the line of the question
    return answer.strip()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A sign of life on stderr while others are asked; what is said meanwhile goes above it."""
    if _moving:
        yield
        return
    if _has_moving_lines():
        from rich.status import Status
        from rich.text import Text

        sign: _Moving = Status(Text(plain(typed(text))), console=_console(stderr=True))
    else:
        began_s = time.monotonic()
        sign = NowAndThen(
            lambda: _(
                "still {what}, for {time} so far",
                what=text,
                time=duration(time.monotonic() - began_s),
            ),
            say,
        )
    with _moved(sign):
        yield


@contextmanager
def progress(what: str, unit: str = BYTES, *, is_left_told: bool = False) -> Iterator[Progress]:
    """How far it is, on stderr, for whatever may take longer than two seconds: bars on a terminal,
    elsewhere a line now and then. `is_left_told`: see Progress.
    """
    made = Progress(what, unit, is_left_told=is_left_told)
    if _has_moving_lines():
        from boxcar.laptop.common.bars import Bars

        display: _Moving = Bars(made, _console(stderr=True), lambda text: plain(typed(text)))
    else:
        display = NowAndThen(made.line, say)
    with _moved(display):
        yield made


@contextmanager
def _moved(display: _Moving) -> Iterator[None]:
    """Two that move at once would draw over each other: the one before stops meanwhile."""
    before = _moving[-1] if _moving else None
    if before:
        before.stop()
    _moving.append(display)
    try:
        display.start()
        yield
    finally:
        _moving.pop()
        display.stop()
        if before:
            before.start()


def _has_moving_lines() -> bool:
    return sys.stderr.isatty() and not _console(stderr=True).is_dumb_terminal


def _stderr() -> Console:
    """The console of what moves there, if something does."""
    moving = getattr(_moving[-1], "console", None) if _moving else None
    return moving or _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else _IN_A_PIPE)
