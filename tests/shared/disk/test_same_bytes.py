from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import digest

SOME = bytes(range(256))


@pytest.fixture(params=[3, 1 << 18])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_PIECE_BYTES", request.param)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("data", "other", "begins", "is_same"),
    [
        (SOME, SOME, True, True),
        (SOME, SOME[:-1], True, False),
        (SOME, b"", True, False),
        (b"", b"", True, True),
        (SOME[:-1], SOME, False, False),
        (b"", b"x", False, False),
        (SOME, SOME[:-1] + b"\0", False, False),
        (SOME, b"x" + SOME[1:], False, False),
    ],
)
def test_two_files_are_the_same_or_one_is_the_beginning_of_the_other(
    tmp_path: Path, data: bytes, other: bytes, begins: bool, is_same: bool
) -> None:
    path, copy = tmp_path / "path", tmp_path / "copy"
    path.write_bytes(data)
    copy.write_bytes(other)
    assert digest.begins_with(path, copy) is begins
    assert digest.has_same_bytes(path, copy) is is_same


@pytest.mark.parametrize("gone", ["path", "copy"])
def test_a_file_that_is_not_there_is_no_other_one(tmp_path: Path, gone: str) -> None:
    for name in {"path", "copy"} - {gone}:
        (tmp_path / name).write_bytes(b"")
    for ask in (digest.begins_with, digest.has_same_bytes):
        with pytest.raises(FileNotFoundError):
            ask(tmp_path / "path", tmp_path / "copy")
