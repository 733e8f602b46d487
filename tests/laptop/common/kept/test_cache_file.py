"""What was worked out before is taken only as it was written, by this Boxcar; else it goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.common.kept import cache_file
from boxcar.shared.disk import digest

SHAPE = [1, ("name", "size")]


def taken(path: Path, shape: Any = SHAPE) -> list[Any]:
    found = list[Any]()
    cache_file.read(path, shape, found.append)
    return found


def test_what_was_written_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "kept.json"
    assert taken(path) == []
    assert cache_file.write(path, SHAPE, {"a": [1, 2]})
    assert taken(path) == [{"a": [1, 2]}] == taken(path)


def _of(ours: Any) -> bytes:
    body = json.dumps([ours, {}]).encode()
    return digest.of_bytes(body).encode() + b"\n" + body


@pytest.mark.parametrize(
    "data", [b"", b"{}", _of(["another", SHAPE]), _of(None), b"cut", b"flipped"]
)
def test_one_that_is_damaged_or_of_another_boxcar_is_removed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "kept.json"
    cache_file.write(path, SHAPE, {"a": [1, 2]})
    whole = path.read_bytes()
    path.write_bytes({b"cut": whole[:-3], b"flipped": whole.replace(b"2]", b"3]")}.get(data, data))
    assert taken(path) == [] and not path.exists()


def test_one_whose_rows_have_other_fields_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    cache_file.write(path, SHAPE, {})
    assert taken(path, [1, ("name", "size", "time")]) == [] and not path.exists()


def test_one_of_which_nothing_can_be_made_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    cache_file.write(path, SHAPE, 7)
    cache_file.read(path, SHAPE, {}.update)
    assert not path.exists()


def test_a_disk_that_takes_none_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "kept.json").mkdir()
    assert not cache_file.write(tmp_path / "kept.json", SHAPE, {})
    assert taken(tmp_path / "kept.json") == []
