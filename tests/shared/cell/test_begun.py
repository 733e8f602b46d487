from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import Own
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import Event


def started(cell: str = "a", **data: Any) -> Event:
    # Through JSON, as it comes out of a journal; what is null is left out there.
    kept = {key: value for key, value in data.items() if value is not None}
    return Event(
        1,
        "evt_1",
        "2026-11-21T03:27:43.973Z",
        "cell.started",
        {"cell": cell} | json.loads(json.dumps(kept)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "a.yaml t 3",
        "a.yaml t 3 nproc=2 after=x,y time=1h env.A='x y' env.B=",
        "- - 3 name=a --lr 1 'x={a:1}'",
        "a.yaml t 3 -- -- name=b",
    ],
)
def test_an_event_says_the_whole_line(text: str) -> None:
    line = cell_line.parse(text.encode(), -1, 0)
    event = started(line.name, **cell_line.begun_fields(line), cfg=line.cfg, epochs=line.epochs)
    assert cell_line.begun_line(event) == line


def test_an_event_of_an_older_agent_says_a_line_without_words() -> None:
    found = cell_line.begun_line(started(cfg="a.yaml", task="t", epochs=3))
    assert found == CellLine(-1, 0, "a", "a.yaml", "t", 3)


def test_what_says_nothing_is_left_out() -> None:
    line = cell_line.parse(b"a.yaml t 3", 0, 1)
    assert cell_line.begun_fields(line) == {"task": "t", "own": None, "overrides": None}


def test_own_words_that_are_none_are_damage() -> None:
    with pytest.raises(DamagedError, match="nproc"):
        cell_line.begun_line(started(cfg="a", task="t", epochs=3, own={"nproc": "many"}))
    with pytest.raises(KeyError):
        cell_line.begun_line(started(cfg="a", epochs=3))


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4).map(tuple))
def test_overrides_come_back_letter_by_letter(overrides: tuple[str, ...]) -> None:
    line = CellLine(-1, 0, "a", "a.yaml", "t", 3, Own(env={"A": "{x}"}), overrides)
    assert (
        cell_line.begun_line(started(**cell_line.begun_fields(line), cfg="a.yaml", epochs=3))
        == line
    )
