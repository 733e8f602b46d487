"""Flags that the overrides of a line say a second time: beside the command, or beside one another.

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
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, mark

_MEANT = _("; if you mean it, put {rest} before it", rest=REST)


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
    return [_("{head}: {text}", head=_where(places), text=text) for text, places in found.items()]


def _where(places: Sequence[str]) -> str:
    if len(places) == 1:
        return places[0]
    return _("{place} and {n} more {n:line|lines}", place=places[0], n=len(places) - 1)


def _of_line(plan: Plan, line: CellLine) -> Iterator[str]:
    mine = _flags(line.overrides[: line.judged])
    if not mine:
        return
    command = {flag.key: flag for flag in _flags(_whole(plan, line))}
    keys = [flag.key for flag in mine]
    for flag in mine:
        if keys.count(flag.key) > 1:
            yield _(
                "{head} is given twice, and most scripts use the last{meant}",
                head=flag.head,
                meant=_MEANT,
            )
        if other := command.get(flag.key):
            taken = _(mark("the command's") if other.is_behind_more else mark("the line's"))
            yield (
                _(
                    "{head} is also in the command ({text}). Most scripts use the last, here "
                    "{taken}{meant}",
                    head=flag.head,
                    text=other.text,
                    taken=taken,
                    meant=_MEANT,
                )
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
