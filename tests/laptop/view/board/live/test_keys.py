from __future__ import annotations

import pytest
from big_run import shot

from boxcar.laptop.view.board.layout import (
    AT_START,
    BOXES,
    DONE,
    FAILED,
    HISTORY,
    LOG,
    OVERVIEW,
    QUEUED,
    RUNNING,
    Focus,
    rows_in_reach,
)
from boxcar.laptop.view.board.screen import (
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    OTHER,
    PAGE_DOWN,
    UP,
    focus_after_key,
    read_keys,
)

SHOT = shot(36, 3)


def pressed(*typed: str, at: Focus = AT_START) -> Focus:
    for key in typed:
        at = focus_after_key(SHOT, at, key, page=5)
    return at


def test_what_a_terminal_sends_becomes_keys() -> None:
    assert read_keys(b"fx/") == ["f", "x", "/"]
    assert read_keys(b"\x1b[A\x1bOB\x1b[5~\x1b[H\x1b[F") == ["up", "down", "page up", "home", "end"]
    assert read_keys(b"\r\x7f\x1b") == ["enter", "backspace", "escape"]
    assert read_keys("层".encode()) == ["层"]
    assert read_keys(b"\x1b[200~\x00\xff") == [OTHER, OTHER, "\ufffd"]


@pytest.mark.parametrize(
    ("key", "shown"), [("f", FAILED), ("r", RUNNING), ("d", DONE), ("q", QUEUED), ("b", BOXES)]
)
def test_a_list_opens_with_its_key_and_closes_with_it_or_escape(key: str, shown: str) -> None:
    assert pressed(key).shown == shown
    assert pressed(key, key).shown == OVERVIEW
    assert pressed(key, ESCAPE).shown == OVERVIEW


def test_the_arrows_move_between_the_rows_and_stop_at_both_ends() -> None:
    names = rows_in_reach(SHOT, Focus(DONE))
    assert pressed("d", DOWN).chosen == names[0]
    assert pressed("d", DOWN, DOWN).chosen == names[1]
    assert pressed("d", DOWN, UP, UP).chosen == names[0]
    assert pressed("d", END).chosen == names[-1]
    assert pressed("d", END, DOWN).chosen == names[-1]
    assert pressed("d", END, HOME).chosen == names[0]
    assert pressed("d", DOWN, PAGE_DOWN).chosen == names[5]


def test_enter_and_l_open_the_log_e_the_history_and_escape_goes_back() -> None:
    for key, page in ((ENTER, LOG), ("l", LOG), ("e", HISTORY)):
        opened = pressed("d", DOWN, DOWN, key)
        assert (opened.opened, opened.page) == (rows_in_reach(SHOT, Focus(DONE))[1], page)
    back = pressed(ESCAPE, at=opened)
    assert (back.opened, back.shown, back.chosen) == ("", DONE, opened.chosen)
    assert pressed("l").opened == rows_in_reach(SHOT, Focus())[0], (
        "nothing chosen: what needs a person"
    )


def test_in_an_opened_cell_the_arrows_scroll_and_never_below_its_end() -> None:
    assert pressed("l", UP, UP).back == 2
    assert pressed("l", UP, DOWN, DOWN).back == 0
    assert pressed("l", UP, "e").back == 0


def test_a_filter_takes_letters_that_are_keys_elsewhere() -> None:
    typing = pressed("/", "x", "q")
    assert (typing.filter, typing.is_typing, typing.has_left) == ("xq", True, False)
    assert pressed("backspace", at=typing).filter == "x"
    assert pressed(ENTER, at=typing) == Focus(filter="xq")
    assert pressed(ESCAPE, at=typing) == Focus()


def test_x_leaves_from_everywhere_and_no_other_key_does() -> None:
    assert pressed("x").has_left and pressed("d", "x").has_left and pressed("l", "x").has_left
    assert not pressed("Q", "z", OTHER).has_left


def test_nothing_can_be_chosen_where_there_is_nothing() -> None:
    nothing = Focus(filter="no such cell")
    assert pressed(DOWN, ENTER, at=nothing).opened == ""
