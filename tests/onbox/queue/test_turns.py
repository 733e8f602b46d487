from __future__ import annotations

import pytest

from onbox.queue.next_cell import Standing, turns

V, C, L = Standing.VERIFIED, Standing.TO_COME, Standing.LOST


@pytest.mark.parametrize(
    ("after", "standings", "waiting", "blocked"),
    [
        pytest.param({"b": ("a",)}, {"a": V}, {}, {}, id="what is verified keeps nobody"),
        pytest.param({"b": ("a",)}, {"a": C}, {"b": "a"}, {}, id="what is to come is waited for"),
        pytest.param({"b": ("a",)}, {"a": L}, {}, {"b": "a"}, id="what is lost blocks"),
        pytest.param({"c": ("a", "b")}, {"a": V, "b": C}, {"c": "b"}, {}, id="all count"),
        pytest.param({"c": ("a", "b")}, {"a": C, "b": L}, {}, {"c": "b"}, id="one lost is enough"),
        pytest.param(
            {"c": ("b",), "b": ("a",)},
            {"a": L, "b": C},
            {},
            {"b": "a", "c": "b"},
            id="who comes after a blocked one is blocked",
        ),
        pytest.param(
            {"c": ("b",), "b": ("a",)},
            {"a": C, "b": C},
            {"c": "b", "b": "a"},
            {},
            id="a chain",
        ),
        pytest.param(
            {"a": ("b",), "b": ("a",)}, {"a": C, "b": C}, {}, {"a": "b", "b": "a"}, id="a circle"
        ),
        pytest.param(
            {"a": ("a",), "c": ("a",)}, {"a": C}, {}, {"a": "a", "c": "a"}, id="after itself"
        ),
    ],
)
def test_whose_turn_it_is(after, standings, waiting, blocked):
    found = turns(after, standings)
    assert (found.waiting, found.blocked) == (waiting, blocked)


def test_a_circle_may_lead_over_other_queues() -> None:
    """`x` and `y` are lines of another queue, that wait; `z` is one that waits for nobody here."""
    after = {"a": ("x",), "b": ("a",), "c": ("z",)}
    standings = dict.fromkeys("xaz", C)
    found = turns(after, standings, {"x": ("y",), "y": ("a",), "z": ("n",)})
    assert found.blocked == {"a": "x", "b": "a"}
    assert found.circles == {"a": ("a", "x", "y", "a"), "b": ("b", "a", "x", "y", "a")}
    assert found.waiting == {"c": "z"}
