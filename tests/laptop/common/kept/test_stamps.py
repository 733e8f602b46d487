from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxcar.laptop.common.kept import stamps
from boxcar.shared.disk import stamp


@pytest.fixture
def below(tmp_path: Path) -> Iterator[int]:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_each_has_a_row_with_what_the_disk_says_of_it(tmp_path: Path, below: int) -> None:
    found = stamps.of_all(below, ["b", "missing", "a"])
    assert stamps.count(found) == 3
    row = [*stamp.of(tmp_path / "b"), *[0] * 6, *stamp.of(tmp_path / "a")]
    assert [*found] == row


def test_one_from_before_1970_is_never_old_and_moves_no_other_row(
    tmp_path: Path, below: int
) -> None:
    os.utime(tmp_path / "b", (-5, -5))
    found = stamps.of_all(below, ["a", "b", "c"])
    assert found[12:] == stamps.of_one(stamp.of(tmp_path / "c"))
    assert found[6:12] == stamps.of_one(stamp.of(tmp_path / "b"))
    assert not stamp.is_old(found[6:12], 2**63)
    assert not stamp.is_old(stamps.youngest(found), 2**63)


def test_the_youngest_of_each_column() -> None:
    found = array("Q", [1, 2, 30, 4, 5, 6, 1, 2, 3, 40, 5, 6])
    assert stamps.youngest(found) == [1, 2, 30, 40, 5, 6]
    assert stamps.youngest(array("Q")) == [0] * 6


def test_rows_that_are_not_what_they_were(tmp_path: Path, below: int) -> None:
    names = ["a", "b", "c"]
    before = stamps.of_all(below, names)
    assert [*stamps.unlike(before, stamps.of_all(below, names))] == []
    (tmp_path / "a").unlink()
    (tmp_path / "c").write_text("longer")
    assert [*stamps.unlike(stamps.of_all(below, names), before)] == [0, 2]


def test_a_row_is_put_in_its_place_or_behind_the_last() -> None:
    found = array("Q", range(12))
    stamps.put(found, 1, array("Q", [9] * 6))
    stamps.put(found, 2, array("Q", [8] * 6))
    assert [*found] == [*range(6), *[9] * 6, *[8] * 6]
