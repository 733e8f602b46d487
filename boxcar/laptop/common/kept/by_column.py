"""Rows as they are kept in a file: a column at a time, and one that says the same everywhere once.

To read a hundred thousand rows with a name for each field takes longer than all that is done with
them; and of most fields a run's cells have the same.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# The number of rows, and their columns.
Columns = list[Any]


def of(columns: Sequence[Sequence[Any]]) -> Columns:
    """Of columns that are equally long."""
    count = len(columns[0])
    return [count, [_once(column) for column in columns] if count else []]


def fields(records: Iterable[Any], names: Iterable[str]) -> list[list[Any]]:
    """What stands in these fields of the records: a column for each."""
    found = [*records]
    return [[*map(operator.attrgetter(name), found)] for name in names]


def made(kept: Columns, make: Callable[..., T]) -> Iterator[T]:
    """Of each row what `make` makes of its fields; a list is given as the tuple that it was."""
    return map(make, *columns(kept)) if kept[0] else iter(())


def columns(kept: Columns) -> list[Iterable[Any]]:
    """Each with as many fields as there are rows; none where there is no row."""
    count, found = kept
    return [_all(column, count) for column in found]


def _once(column: Sequence[Any]) -> Sequence[Any]:
    first, spelled = column[0], repr(column[0])
    # By how they are spelled: 1 is not 1.0 to everybody.
    is_same = all(value is first or repr(value) == spelled for value in column)
    return column[:1] if is_same else column


def _all(column: list[Any], count: int) -> Iterable[Any]:
    if type(column[0]) is list:
        column = [*map(tuple, column)]
    return itertools.repeat(column[0], count) if len(column) == 1 else column
