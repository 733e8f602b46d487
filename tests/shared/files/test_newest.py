from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files.release import releases, with_newest


def test_nothing_was_pushed_where_there_is_no_list(tmp_path: Path) -> None:
    assert releases(tmp_path / "newest.json") == ()


def test_what_is_no_list_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "newest.json").write_text("[]")
    with pytest.raises(DamagedError):
        releases(tmp_path / "newest.json")


def test_one_that_is_pushed_again_is_the_newest_again_and_the_list_stays_small() -> None:
    assert with_newest(("a", "b"), "a") == ("b", "a")
    many = tuple(map(str, range(100)))
    assert with_newest(many, "x") == (*many[1:], "x")
