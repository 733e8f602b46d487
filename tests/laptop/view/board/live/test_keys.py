from __future__ import annotations

from dataclasses import replace

import pytest
from big_run import shot

from boxcar.laptop.view.board.focus import (
    AT_START,
    BESIDE,
    BOXES,
    DONE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    FAILED,
    HELP,
    HOME,
    LOG,
    OTHER,
    OVERVIEW,
    PAGE_DOWN,
    PAGE_UP,
    QUEUED,
    RUNNING,
    STORY,
    TAB,
    UP,
    WHY,
    Focus,
    Sight,
    focus_after_key,
    read_keys,
    rows_in_reach,
)
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.pages import OpenedCell, sight_of

SHOT = shot(36, 3)
LOG_LINES = [f"epoch {n} loss {1 / (n + 1):.3f}" for n in range(200)]
OPENED = OpenedCell("seg", "running", (), ["a", "b"], ["why"], LOG_LINES, -100)


def pressed(*typed: str, at: Focus = AT_START) -> Focus:
    """After each key the board is drawn, and the next one sees it."""
    for key in typed:
        opened = OPENED if at.opened else None
        lines = layout(SHOT, 80, 24, at, opened)
        at = focus_after_key(SHOT, at, key, sight_of(lines, at, opened))
    return at


def test_what_a_terminal_sends_becomes_keys() -> None:
    assert read_keys(b"fx/") == ["f", "x", "/"]
    assert read_keys(b"\x1b[A\x1bOB\x1b[5~\x1b[H\x1b[F") == ["up", "down", "page up", "home", "end"]
    assert read_keys(b"\r\x7f\x1b\t") == ["enter", "backspace", "escape", "tab"]
    assert read_keys("层".encode()) == ["层"]
    assert read_keys(b"\x1b[200~\x00\xff") == [OTHER, OTHER, "\ufffd"]


def test_a_mouse_sends_lines_of_the_wheel_and_clicks() -> None:
    assert read_keys(b"\x1b[<64;10;5M\x1b[<65;1;1M") == [UP, UP, UP, DOWN, DOWN, DOWN]
    assert read_keys(b"\x1b[<0;10;5M\x1b[<0;10;5m\x1b[<2;1;1M") == ["click 4"]
    assert read_keys(b"\x1b[<0;1M\x1b[<64;") == [OTHER, OTHER], "half of one harms nothing"


@pytest.mark.parametrize(
    ("key", "shown"), [("f", FAILED), ("r", RUNNING), ("d", DONE), ("u", QUEUED), ("b", BOXES)]
)
def test_a_list_opens_with_its_key_and_closes_with_it_or_escape(key: str, shown: str) -> None:
    assert pressed(key).shown == shown
    assert pressed(key, key).shown == OVERVIEW
    assert pressed(key, ESCAPE).shown == OVERVIEW


@pytest.mark.parametrize(("down", "up", "end", "home"), [(DOWN, UP, END, HOME), (*"jkGg",)])
def test_the_arrows_and_their_letters_move_between_the_rows_and_stop_at_both_ends(
    down: str, up: str, end: str, home: str
) -> None:
    names = rows_in_reach(SHOT, Focus(DONE))
    assert pressed("d", down).chosen == names[0]
    assert pressed("d", down, down).chosen == names[1]
    assert pressed("d", down, up, up).chosen == names[0]
    assert pressed("d", end).chosen == names[-1]
    assert pressed("d", end, down).chosen == names[-1]
    assert pressed("d", end, home).chosen == names[0]


def test_a_page_is_what_the_screen_shows() -> None:
    names = rows_in_reach(SHOT, Focus(QUEUED))
    page = names.index(pressed("u", HOME, PAGE_DOWN).chosen)
    shown = [line for line in layout(SHOT, 80, 24, Focus(QUEUED)) if line.of]
    assert page == len(shown) - 1 > 3
    assert pressed("u", HOME, PAGE_DOWN, PAGE_UP).chosen == names[0]


def test_a_cell_opens_at_its_log_and_tab_or_a_number_shows_another_page() -> None:
    names = rows_in_reach(SHOT, Focus(DONE))
    for key, page in ((ENTER, LOG), ("1", LOG), ("2", STORY), ("3", WHY)):
        opened = pressed("d", DOWN, DOWN, key)
        assert (opened.opened, opened.page) == (names[1], page)
    assert [pressed(*[TAB] * n, at=opened).page for n in range(4)] == [WHY, LOG, STORY, WHY]
    assert pressed("1", at=opened).page == LOG
    for key in (ESCAPE, "q"):
        back = pressed(key, at=opened)
        assert (back.page, back.opened, back.shown, back.chosen) == ("", "", DONE, names[1])
        assert not back.has_left
    assert pressed(ENTER).opened == rows_in_reach(SHOT, Focus())[0], (
        "nothing chosen: what needs a person"
    )


def test_a_log_is_followed_until_somebody_scrolls_and_again_from_its_end_on() -> None:
    assert pressed(ENTER).top is None
    page = len(pressed_sight(pressed(ENTER)).numbers)
    up = pressed(ENTER, UP, "k")
    assert up.top == 100 - page - 2, "numbers, so that what is written meanwhile moves nothing"
    assert pressed("j", "j", at=up).top == 100 - page
    assert pressed("j", "j", "j", at=up).top is None
    assert pressed("G", at=up).top is None
    assert pressed(" ", at=up).top == 100 - 3, "the last line that was seen"
    first = pressed("g", at=up)
    assert pressed_sight(first).numbers[0] == -100
    assert pressed("j", at=first).top == -99 and pressed("k", at=first).top == -100


def pressed_sight(at: Focus) -> Sight:
    return sight_of(layout(SHOT, 80, 24, at, OPENED), at, OPENED)


def test_a_search_in_a_log_shows_the_last_match_while_it_is_typed_and_n_the_others() -> None:
    typing = pressed(ENTER, "/", "1", "9")
    assert typing.is_typing and typing.search == "19"
    assert pressed(ENTER, "/", "1").top == 99, "and the first line has one, too"
    found = pressed(ENTER, at=typing)
    assert found.top == 99 and "epoch 199" in LOG_LINES[199]
    assert [pressed(*"N" * n, at=found).top for n in (1, 2)] == [98, 97]
    assert pressed("N", "n", at=found).top == 99
    assert "19" in LOG_LINES[pressed("n", at=found).top + 100], "the first one after the last"
    assert pressed(ESCAPE, at=found).search == "" and pressed(ESCAPE, at=found).page == LOG


def test_a_filter_takes_letters_that_are_keys_elsewhere() -> None:
    typing = pressed("/", "x", "q")
    assert (typing.filter, typing.is_typing, typing.has_left) == ("xq", True, False)
    assert pressed("backspace", at=typing).filter == "x"
    assert pressed(ENTER, at=typing) == Focus(filter="xq")
    assert pressed(ESCAPE, at=typing) == Focus()


def test_q_closes_what_is_open_and_else_leaves() -> None:
    assert pressed("q").has_left and pressed("d", "q").has_left
    for opens in (ENTER, "?", "2"):
        closed = pressed(opens, "q")
        assert not closed.has_left and closed.page == ""
    assert not pressed("Q", "z", "x", OTHER).has_left


def test_the_keys_are_shown_over_what_is_open_which_comes_back() -> None:
    assert pressed("?").page == HELP and pressed("?", "?").page == ""
    shown = pressed(ENTER, "?")
    assert shown.page == HELP and pressed(ESCAPE, at=shown).page == LOG


def test_s_sorts_by_each_column_and_number_in_turn_and_capital_s_turns_it() -> None:
    found, at = [], AT_START
    while (at := pressed("s", at=at)).sort:
        found.append(at.sort)
    columns = ["cell", "state", "progress", "left", "time", "speed", "box"]
    assert found == ["train_loss", "psnr_db", *columns]
    up = rows_in_reach(SHOT, Focus(DONE, sort="time"))
    assert up == rows_in_reach(SHOT, Focus(DONE, sort="time", is_downward=True))[::-1]
    seconds = {row.cell: row.view.seconds for row in SHOT.done}
    assert [seconds[cell] for cell in up] == sorted(seconds.values())
    assert pressed("S").is_downward


def test_what_is_not_known_of_a_cell_comes_last_in_both_directions() -> None:
    known = {row.cell for row in SHOT.all_cells if row.view.seconds}
    for is_downward in (False, True):
        sorted_ = rows_in_reach(SHOT, Focus(filter="r", sort="time", is_downward=is_downward))
        assert {*sorted_[: len(known)]} == known


def test_two_cells_are_marked_and_seen_beside_each_other() -> None:
    names = rows_in_reach(SHOT, Focus(RUNNING))
    marked = pressed("r", "j", " ", "j", " ")
    assert marked.marked == (names[0], names[1])
    assert pressed(" ", at=marked).marked == (names[0],)
    assert pressed("j", " ", at=marked).marked == (names[1], names[2]), "two at most, the last ones"
    assert pressed("=", at=marked).page == BESIDE
    assert pressed("r", "j", " ", "j", "=").marked == (names[0], names[1])
    assert pressed("r", "j", "=").page == "", "one alone is beside nothing"


def test_a_click_chooses_a_cell_and_the_next_one_opens_it() -> None:
    lines = layout(SHOT, 80, 24, Focus(DONE))
    at = next(number for number, line in enumerate(lines) if line.of)
    chosen = focus_after_key(SHOT, Focus(DONE), f"click {at}", Sight(lines))
    assert chosen.chosen == lines[at].of and not chosen.page
    opened = focus_after_key(SHOT, chosen, f"click {at}", Sight(lines))
    assert (opened.opened, opened.page) == (lines[at].of, LOG)
    nowhere = focus_after_key(SHOT, chosen, "click 0", Sight(lines))
    assert nowhere == chosen


def test_m_tracks_the_mouse_which_nothing_does_before() -> None:
    assert not AT_START.has_mouse and pressed("m").has_mouse
    assert not pressed("m", "m").has_mouse


def test_what_is_sorted_marked_or_tracked_stays_so_in_another_list() -> None:
    at = replace(AT_START, sort="time", is_downward=True, has_mouse=True, marked=("a", "b"))
    assert pressed("d", at=at) == replace(at, shown=DONE)


def test_nothing_can_be_chosen_where_there_is_nothing() -> None:
    nothing = Focus(filter="no such cell")
    assert pressed(DOWN, ENTER, at=nothing).opened == ""
