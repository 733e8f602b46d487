"""Notes in lines that fit."""

from __future__ import annotations

import pytest

from boxcar.laptop.common.text_layout import wrap_text
from boxcar.shared.text_width import width_in_cells


def test_lines_break_between_words_and_none_is_wider() -> None:
    text = "boxes are awake and switched off, and nothing of it is lost to anybody at all"
    lines = wrap_text(text, 30)
    assert " ".join(lines) == text and all(len(line) <= 30 for line in lines)


def test_what_fits_stays_as_it_is() -> None:
    assert wrap_text("two  blanks\n\n  and a second line ", 40) == [
        "two  blanks", "", "  and a second line ",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "boxcar launch --start-index 0",
        "invoke logs --cell 'a b' --job other.yaml",
        "/opt/my/bin/boxcar down --profile autodl",
    ],
)
def test_a_command_stands_in_one_line(command: str) -> None:
    text = f"3 cells of this run are not here yet, which nothing forbids. Next: {command}  (why)"
    lines = wrap_text(text, 50)
    assert any(command in line for line in lines)
    assert all(len(line) <= 50 for line in lines)


def test_what_is_to_be_typed_stands_in_one_piece_even_where_it_is_too_wide() -> None:
    typed = "python -m pip install torch numpy --extra-index-url https://example.org/whl/cpu"
    assert wrap_text(f"the demo trains with torch. To install it, type: {typed}", 40)[-1] == typed


def test_a_path_is_never_broken() -> None:
    path = "/durable/boxcar/" + "a" * 40
    assert wrap_text(f"appended to the file {path}: one line", 30) == [
        "appended to the file", path + ":", "one line",
    ]  # fmt: skip


def test_a_line_keeps_its_indent() -> None:
    assert wrap_text("  the cell recon, abandoned because it is late", 24) == [
        "  the cell recon,",
        "  abandoned because it",
        "  is late",
    ]


def test_chinese_breaks_between_signs_and_never_before_a_comma() -> None:
    text = "每个 cell 都已验证、移除或放弃；你同意后即可释放实例，结果保留在本机"
    for width in range(8, 40):
        lines = wrap_text(text, width)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert all(width_in_cells(line) <= width for line in lines)
        assert not any(line[0] in "，、；。" for line in lines)
