from __future__ import annotations

import pytest

from onbox.agent.queue.turns import Standing, Turns, turns

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
    assert turns(after, standings) == Turns(waiting, blocked)
