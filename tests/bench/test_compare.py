from __future__ import annotations

from typing import Any

import pytest

from bench.compare import changes
from bench.row import Row, no_value


def run(*rows: Row) -> dict[str, Any]:
    return {"parts": {"copies": [row.document for row in rows]}}


def row(value: float, peer: float | None = None) -> Row:
    return Row("a copy", value, "s", peer, "rsync" if peer else "")


def words(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [change[-1] for change in changes(old, new)]


def test_what_became_slower_is_said_with_both_figures() -> None:
    [change] = changes(run(row(2.0)), run(row(3.0)))
    assert change == ("copies", "a copy", "2 s", "3 s", "slower, 1.50x")


def test_ratios_are_compared_where_there_are_peers_not_seconds() -> None:
    # The machine is three times as slow, and so is the peer.
    assert words(run(row(1.0, 2.0)), run(row(3.0, 6.0))) == []
    assert words(run(row(1.0, 2.0)), run(row(1.0, 1.0))) == ["slower, 2.00x"]


@pytest.mark.parametrize("now", [1.0, 1.1, 0.9])
def test_noise_is_not_said(now: float) -> None:
    assert words(run(row(1.0)), run(row(now))) == []


@pytest.mark.parametrize(("then", "now"), [(-1.0, 5.0), (5.0, -1.0), (0.0, 5.0), (-5.0, -1.0)])
def test_what_is_below_nothing_is_chance(then: float, now: float) -> None:
    assert words(run(row(then)), run(row(now))) == []


def test_what_could_not_be_measured_is_said() -> None:
    failed = no_value("a copy", "no disk")
    assert words(run(row(1.0)), run(failed)) == ["not comparable"]
    assert words(run(row(1.0)), {"parts": {}}) == ["not comparable"]
    assert words(run(failed), run(failed)) == []
