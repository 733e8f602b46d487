"""Flags that a line's overrides say a second time: beside the command, or beside one another.

Nothing of it is refused: to override a default of the command is what people do, and some flags may
stand twice. But the cell is named by its line, and a script takes one of the two. Behind a `--`
nothing is judged. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from boxcar.laptop.project.queue_files import QueueFile, queue_lines
from boxcar.shared.cell import terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import key_of
from boxcar.shared.cell.own_words import REST
from boxcar.shared.cell.placeholders import MORE
from boxcar.shared.files.plan import Plan
from boxcar.shared.message import counted
from boxcar.shared.record import dataclass

_MEANT = f"; where that is meant, a {REST} before it says so"


@dataclass(frozen=True)
class _Flag:
    """`key` without what stands before it, and all of it as typed: `--epochs {epochs}`."""

    key: str
    text: str
    is_behind_more: bool = False

    @property
    def head(self) -> str:
        """Without its value: `--epochs`, `lr=`."""
        return re.split(r"(?<==)| ", self.text, maxsplit=1)[0]


def notes_on_duplicate_flags(plan: Plan, queues: Sequence[QueueFile]) -> list[str]:
    """One sentence for each flag, with the first line and how many say so."""
    found: dict[str, list[str]] = {}
    for queue, line in queue_lines(queues):
        for text in dict.fromkeys(_of_line(plan, line)):
            found.setdefault(text, []).append(queue.at(line))
    return [f"{_where(places)}: {text}" for text, places in found.items()]


def _where(places: Sequence[str]) -> str:
    more = f" and {counted(len(places) - 1, 'more line')}" if len(places) > 1 else ""
    return f"{places[0]}{more}"


def _of_line(plan: Plan, line: CellLine) -> Iterator[str]:
    mine = _flags(line.overrides[: line.judged])
    if not mine:
        return
    command = {flag.key: flag for flag in _flags(_whole(plan, line))}
    keys = [flag.key for flag in mine]
    for flag in mine:
        if keys.count(flag.key) > 1:
            yield f"{flag.head} stands twice, and most scripts take the last{_MEANT}"
        if other := command.get(flag.key):
            taken = "the command's" if other.is_behind_more else "the line's"
            yield (
                f"{flag.head} stands in the command too ({other.text}), and most scripts take the "
                f"last, which is {taken}{_MEANT}"
            )


def _whole(plan: Plan, line: CellLine) -> tuple[str, ...]:
    """All of the command but the overrides, which take the place of {more}."""
    command = terms.terms_of_cell(plan, line.name).command
    return (*command, *(() if MORE in command else (MORE,)), *plan.resume_args)


def _flags(words: Sequence[str]) -> list[_Flag]:
    """The words that say something by a key: `--lr 1`, `--lr=1`, `lr=1`, `+lr=1`."""
    found, is_behind = list[_Flag](), False
    for word, value in pairwise((*words, "")):
        is_behind = is_behind or word == MORE
        is_flag = word.startswith("-") and not _is_number(word) and bool(key_of(word))
        if "=" in word and key_of(word):
            found.append(_Flag(key_of(word), word, is_behind))
        elif is_flag:
            is_value = bool(value) and value != MORE and not value.startswith("-")
            found.append(_Flag(key_of(word), f"{word} {value}" if is_value else word, is_behind))
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
