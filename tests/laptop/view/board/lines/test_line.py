from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import (
    cut,
    joined,
    mark_chosen,
    span,
    spread,
    styled,
    wrapped,
)
from boxcar.laptop.view.looks import BAD, DIM


def test_what_is_cut_ends_with_its_mark_and_halves_no_letter() -> None:
    assert cut(styled("磁盘已满"), 6, "…").plain == "磁盘…"
    assert cut(styled("磁盘已满"), 6, "…").cell_len <= 6
    assert cut(styled("short"), 9, "…").plain == "short"
    assert cut(styled("long"), 0, "…").plain == ""


def test_a_mark_looks_as_what_was_cut_and_the_whole_line_stays_as_it_was() -> None:
    line = joined(styled("a name ", DIM), styled("that failed", BAD))
    assert cut(line, 12, "…").spans[-1].style == line.spans[-1].style
    assert line.plain == "a name that failed"


def test_other_people_s_words_cannot_drive_the_terminal_nor_end_the_line() -> None:
    assert span("a\nb\t\x1b[31m").plain == "a b \\x1b[31m"


def test_both_edges_are_kept_where_there_is_room_else_the_left_one() -> None:
    assert spread(styled("left"), styled("right"), 12, "…").plain == "left   right"
    assert spread(styled("left"), styled("right"), 10, "…").plain == "left"


def test_the_line_under_the_cursor_is_marked_to_the_edge() -> None:
    marked = mark_chosen(styled("实例"), 10)
    assert marked.cell_len == 10 and str(marked.spans[-1].style) == "reverse"


def test_words_are_wrapped_between_them_and_what_is_too_much_is_marked() -> None:
    assert wrapped("next: boxcar pull", 10, 3, "…") == ["next:", "boxcar", "pull"]
    assert wrapped("next: boxcar pull", 12, 3, "…") == ["next:", "boxcar pull"]
    assert wrapped("abcdefgh", 3, 3, "…") == ["abc", "def", "gh"]
    assert wrapped("one two three", 5, 2, "…") == ["one", "two…"]
