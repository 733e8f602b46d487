from __future__ import annotations

from boxcar.laptop.common.text_layout import plain


def test_what_would_drive_the_terminal_is_spelled_out():
    assert plain("a\x1b[31mred\r\x07\u202eb") == "a\\x1b[31mred\\r\\x07\\u202eb"
    assert plain("tab\tand\nline, 中文") == "tab\tand\nline, 中文"
