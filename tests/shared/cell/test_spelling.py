from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell.cell_name import config_path, is_one_edit, same_name_key, stored_names

NFD = unicodedata.normalize("NFD", "ü")


def edits(one: str, other: str) -> int:
    """Levenshtein's distance, the long way."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]


@given(st.text("abn", max_size=6), st.text("abn", max_size=6))
def test_one_edit_is_a_letter_left_out_put_in_or_mistyped(one: str, other: str) -> None:
    assert is_one_edit(one, other) == (edits(one, other) == 1)


@pytest.mark.parametrize(
    ("text", "path"),
    [("./a//b/./c.yaml", "a/b/c.yaml"), (f"{NFD}/a", "ü/a"), ("a/../b", "a/../b"), ("", "")],
)
def test_a_configs_path_has_one_spelling(text: str, path: str) -> None:
    assert config_path(text) == config_path(path) == path


def test_two_files_of_one_spelling_are_both_found() -> None:
    assert stored_names(["ü", NFD, "a"]) == {"ü": ["ü", NFD], "a": ["a"]}


def test_names_that_a_disk_takes_for_one_have_one_key() -> None:
    assert same_name_key("Ü") == same_name_key(NFD)
    assert same_name_key("a") != same_name_key("b")
