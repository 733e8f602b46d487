from __future__ import annotations

import pytest

from boxcar.shared.news.columns import columns, within, without_middle


def test_a_chinese_character_takes_two_columns() -> None:
    assert columns("ab") == 2
    assert columns("失败（a）") == 9


@pytest.mark.parametrize(
    ("text", "room", "cut", "short"),
    [
        ("abcdef", 6, "abcdef", "abcdef"),
        ("abcdef", 5, "abcd…", "ab…ef"),
        ("失败了吗", 8, "失败了吗", "失败了吗"),
        ("失败了吗", 7, "失败了…", "失…了吗"),
        ("recon_skip_q1_seed3", 11, "recon_skip…", "recon…seed3"),
    ],
)
def test_what_has_no_room_is_cut_at_the_end_or_in_the_middle(
    text: str, room: int, cut: str, short: str
) -> None:
    assert within(text, room) == cut
    assert without_middle(text, room) == short
    assert max(columns(cut), columns(short)) <= room
