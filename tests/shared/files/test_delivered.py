from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered

TWO = Delivered({"1f2e": Cursor(41), "3d4c": Cursor(7, disabled="410 Gone")})


def test_each_endpoint_has_its_own_cursor(tmp_path: Path) -> None:
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(TWO))
    assert delivered.read_delivered(path) == TWO


def test_where_nothing_was_delivered_yet_everything_is_still_to_be_sent(tmp_path: Path) -> None:
    assert delivered.read_delivered(tmp_path / "queue_1.json") == Delivered({})
    assert Cursor() == Cursor(seq=0, disabled=None)


def test_a_damaged_cursor_is_not_taken_for_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "queue_1.json"
    path.touch()
    with pytest.raises(DamagedError, match=f"^{path}: "):
        delivered.read_delivered(path)
