"""How a cell is spelled as a line of a queue: a line that can be typed as it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Protocol

from boxcar.shared.cell import cell_line, cell_name, duration, own_words
from boxcar.shared.cell.own_words import ENV, REST, Divided, Own

_PLAIN = re.compile(r"[\w@%+=:,./-]+")


class HasWords(Protocol):
    """A cell of a queue file or of a plan: what its line says beyond config, task and epochs."""

    @property
    def own(self) -> Own: ...
    @property
    def overrides(self) -> tuple[str, ...]: ...


class HasLine(HasWords, Protocol):
    """All that a line says."""

    @property
    def name(self) -> str: ...
    @property
    def cfg(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def epochs(self) -> int | None: ...


def words_of_line(line: HasWords) -> tuple[str, ...]:
    """What else makes it this cell: its own variables, and the overrides."""
    return (*_variables(line.own), *line.overrides)


def line_of(line: HasLine) -> str:
    """The whole line; its name only where the words do not give it."""
    own = line.own
    derived = cell_name.name_of_line(line.cfg, line.task, line.overrides)
    words = [line.cfg, line.task, *([str(line.epochs)] if line.epochs else [])]
    words += [f"name={line.name}"] if line.name != derived else []
    words += [f"nproc={own.nproc}"] if own.nproc else []
    words += [f"after={','.join(own.after)}"] if own.after else []
    words += [f"time={duration.spell_duration(own.time_s)}"] if own.time_s else []
    return " ".join(map(_quoted, (*words, *_variables(own), *_guarded(line.overrides))))


def _quoted(word: str) -> str:
    """In quotes where that is needed; letters of any script need none."""
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def quoted_line(line: HasLine) -> str:
    """The same within a sentence: in quotation marks, and as it is typed between them."""
    text = line_of(line)
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


def _variables(own: Own) -> list[str]:
    return [f"{ENV}{name}={value}" for name, value in own.env.items()]


def _guarded(overrides: Sequence[str]) -> list[str]:
    """The overrides so that they are read as such again."""
    if not overrides:
        return []
    try:
        # Where nothing stands before it, the first is read as a third field.
        is_third = cell_line.taken_epochs(overrides[:1]) == (None, overrides[:1])
        is_plain = is_third and own_words.divide_words(overrides) == Divided((), tuple(overrides), ())
    except ValueError:
        is_plain = False
    return [*([] if is_plain else [REST]), *overrides]
