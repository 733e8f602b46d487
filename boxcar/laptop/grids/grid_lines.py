"""The lines of a grid: how they are spelled and named, and which of them no queue has yet. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from boxcar.laptop.grids import axes
from boxcar.shared.cell import cell_line, cell_name, line_spelling, own_words
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import REST
from boxcar.shared.cell.spelling import same_name_key
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass

_AFTER = "after="
_NAME = "name="
_MOST = 3  # of one kind
_HERE = "the grid itself"


@dataclass(frozen=True)
class Grid:
    """What was asked for. `words` are overrides with their values, and Boxcar's own words."""

    cfg: str
    task: str
    epochs: int | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """A line that is there: where it stands, and whether it has a # before it."""

    line: CellLine
    at: str
    is_dropped: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A cell of the grid that is not written, because a line says the same cell already."""

    cell: str
    at: str
    is_dropped: bool


def grid_lines(grid: Grid) -> list[CellLine]:
    """One for each cell. Raises InputError for words that no line could have."""
    own = [word for word in _before(grid.words) if own_words.is_own(word)]
    try:
        for word in own:
            _check_own(word)
        found = [_line(grid, own, overrides) for overrides in _overrides(grid.words)]
    except ValueError as error:
        raise InputError(f"{error}. No file was changed") from error
    return found


def with_config(line: CellLine, cfg: str) -> CellLine:
    """The cell with a config of its own in place of the overrides."""
    words = [cfg, line.task, *([str(line.epochs)] if line.epochs else [])]
    return replace(_parsed(words), own=line.own)


def divide_lines(
    new: Sequence[CellLine], known: Sequence[Known], saying_of: Callable[[CellLine], str]
) -> tuple[list[CellLine], list[LeftOut]]:
    """The lines that say a new cell, and the others.

    Raises InputError for a name that would say two cells, with both lines.
    """
    there = {same_name_key(one.line.name): one for one in known if not one.is_dropped}
    sayings = {
        saying_of(one.line): one for one in sorted(known, key=lambda one: not one.is_dropped)
    }
    kept, left_out, twins = list[CellLine](), list[LeftOut](), list[tuple[CellLine, Known]]()
    for line in new:
        key = same_name_key(line.name)
        if same := sayings.get(saying_of(line)):
            left_out.append(LeftOut(line.name, same.at, same.is_dropped))
        elif other := there.get(key):
            twins.append((line, other))
        else:
            kept.append(line)
            there[key] = Known(line, _HERE)
    if twins:
        raise InputError([*_of_one_name(twins)])
    return kept, left_out


def _of_one_name(twins: Sequence[tuple[CellLine, Known]]) -> Iterator[str]:
    for line, other in twins[:_MOST]:
        if other.at == _HERE:
            yield (
                f"{line_spelling.quoted_line(other.line)} and {line_spelling.quoted_line(line)} would both be "
                f"the cell {line.name!r}, or one folder on some file systems: leave one of these "
                "values out, and write its line by hand with name=. No file was changed"
            )
            continue
        yield (
            f"the cell {line.name!r} would be {line_spelling.quoted_line(line)}, and in {other.at} it is "
            f"{line_spelling.quoted_line(other.line)}: a name says one cell, so give that line another "
            "with name=, or use another config. No file was changed"
        )
    if len(twins) > _MOST:
        yield f"and so for {len(twins) - _MOST} more cells of the grid"


def _line(grid: Grid, own: Sequence[str], overrides: Sequence[str]) -> CellLine:
    epochs = [str(grid.epochs)] if grid.epochs is not None else []
    line = _parsed([grid.cfg, grid.task, *epochs, *own, *overrides])
    name = cell_name.in_any_script(line.cfg, line.task, line.overrides)
    cell_name.check_name(name)
    return replace(line, name=name)


def _parsed(words: Sequence[str]) -> CellLine:
    text = shlex.join(words)
    try:
        line = cell_line.parse(text.encode(), index=-1, number=0)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return line


def _before(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index(REST)] if REST in words else words


def _overrides(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Of each cell. What stands behind a `--` has its values too; nobody judges its keys."""
    plain = [word for word in _before(words) if not own_words.is_own(word)]
    behind = list(words[len(_before(words)) + 1 :])
    if not plain and not behind:
        raise ValueError("a grid needs at least one key with values, such as lr=1e-3,3e-4")
    for found in axes.combinations([axes.axis(word) for word in (*plain, *behind)]):
        yield (*found[: len(plain)], *([REST] if behind else []), *found[len(plain) :])


def _check_own(word: str) -> None:
    """What Boxcar is told is the same for all cells of a grid."""
    if word.startswith(_NAME):
        raise ValueError(f"{word!r}: the cells of a grid are named by their words")
    if not word.startswith(_AFTER) and len(axes.axis(word)) > 1:
        raise ValueError(
            f"{word!r} is a word of Boxcar's own, and has one value for all cells; if your script "
            f"takes it, put it after {REST}"
        )
