from __future__ import annotations

from boxcar.laptop.view.looks import ASCII, UNICODE, glyphs_of_terminal, state_glyph
from boxcar.shared import state


def test_a_terminal_gets_the_signs_that_it_can_show() -> None:
    assert glyphs_of_terminal("utf-8", {"TERM": "xterm"}) is UNICODE
    assert glyphs_of_terminal("ascii", {"TERM": "xterm"}) is ASCII
    assert glyphs_of_terminal(None, {}) is ASCII
    assert glyphs_of_terminal("utf-8", {"TERM": "linux"}) is ASCII, "its font has few letters"


def test_states_that_differ_in_kind_have_signs_that_differ() -> None:
    for glyphs in (ASCII, UNICODE):
        signs = [
            state_glyph(word, glyphs)[0] for word in ("verified", "running", "failed", "queued")
        ]
        assert len(set(signs)) == 4


def test_every_state_of_a_cell_has_a_sign() -> None:
    words = [kind.word for kind in state.CellState.__args__]
    assert all(state_glyph(word, UNICODE)[0] for word in (*words, "dropped", "damaged", "unknown"))
