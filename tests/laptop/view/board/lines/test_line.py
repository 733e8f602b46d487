from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import (
    Span,
    cut,
    pad,
    span,
    spread,
    stripped,
    text,
    width,
    wrapped,
)


def test_widths_are_those_of_a_terminal() -> None:
    line = (Span("实例"), Span("ab"))
    assert width(line) == 6
    assert width(pad(line, 10)) == 10
    assert text(pad(line, 8, is_right=True)) == "  实例ab"


def test_what_is_cut_ends_with_its_mark_and_halves_no_letter() -> None:
    assert text(cut((Span("磁盘已满"),), 6, "…")) == "磁盘…"
    assert width(cut((Span("磁盘已满"),), 6, "…")) <= 6
    assert text(cut((Span("short"),), 9, "…")) == "short"
    assert cut((Span("long"),), 0, "…") == ()


def test_other_people_s_words_cannot_drive_the_terminal_nor_end_the_line() -> None:
    assert span("a\nb\t\x1b[31m").text == "a b \\x1b[31m"


def test_both_edges_are_kept_where_there_is_room_else_the_left_one() -> None:
    assert text(spread((Span("left"),), (Span("right"),), 12, "…")) == "left   right"
    assert text(spread((Span("left"),), (Span("right"),), 10, "…")) == "left"


def test_no_blanks_are_left_at_the_end() -> None:
    assert text(stripped((Span("a "), Span("  "), Span(" ")))) == "a"
    assert stripped((Span("  "),)) == ()


def test_words_are_wrapped_between_them_and_what_is_too_much_is_marked() -> None:
    assert wrapped("next: boxcar pull", 10, 3, "…") == ["next:", "boxcar", "pull"]
    assert wrapped("next: boxcar pull", 12, 3, "…") == ["next:", "boxcar pull"]
    assert wrapped("abcdefgh", 3, 3, "…") == ["abc", "def", "gh"]
    assert wrapped("one two three", 5, 2, "…") == ["one", "two…"]
