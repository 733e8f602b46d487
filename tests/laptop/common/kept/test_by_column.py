"""Rows come back as they were, and what all of them say stands in the file once."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.laptop.common.kept import by_column


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [("a", 1, ("x",), {"loss": 0.5}, None)],
        [("a", 1, ("x", "y"), {}, None), ("b", 1.0, (), {}, None), ("c", True, (), {}, None)],
        [("a", (), 7), ("b", (), 7), ("c", (), 7)],
    ],
)
def test_rows_come_back_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    kept = json.loads(json.dumps(by_column.of([*zip(*rows, strict=True)] or [()])))
    found = list(by_column.made(kept, lambda *fields: fields))
    assert repr(found) == repr(rows), "1 and 1.0 are two things"
    assert [*map(tuple, zip(*by_column.columns(kept), strict=False))] == rows


def test_what_all_rows_say_is_kept_once() -> None:
    cells = [SimpleNamespace(name=f"c{at}", queue="queue", own={"a": 1}) for at in range(1000)]
    kept = by_column.of(by_column.fields(cells, ("name", "queue", "own")))
    assert [len(column) for column in kept[1]] == [1000, 1, 1]
