"""Rows come back as they were, and what all of them say stands in the file once."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.laptop.common.kept import columns


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
    kept = json.loads(json.dumps(columns.of([*zip(*rows, strict=True)] or [()])))
    found = list(columns.made(kept, lambda *fields: fields))
    assert repr(found) == repr(rows), "1 and 1.0 are two things"
    assert [*map(tuple, zip(*columns.columns(kept), strict=False))] == rows


def test_what_all_rows_say_is_kept_once() -> None:
    cells = [SimpleNamespace(name=f"c{at}", queue="queue", own={"a": 1}) for at in range(1000)]
    kept = columns.of(columns.fields(cells, ("name", "queue", "own")))
    assert [len(column) for column in kept[1]] == [1000, 1, 1]
    assert [*columns.values(kept, 1)] == ["queue"] and len([*columns.values(kept, 0)]) == 1000
    assert [*columns.values(columns.of([()]), 1)] == []
