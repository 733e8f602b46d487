from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.laptop.results.hashed_before import HashedBefore
from boxcar.shared.disk import digest
from boxcar.shared.files.manifest import FileRecord

DATA = b"weights" * 100
FILE = FileRecord("w.dat", len(DATA), digest.of_bytes(DATA))
YEAR_S = 365 * 24 * 3600


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that was written long before anybody hashes it: the clock is a year ahead."""
    found = tmp_path / "cells" / "a"
    found.mkdir(parents=True)
    (found / "w.dat").write_bytes(DATA)
    now_ns = (found / "w.dat").stat().st_ctime_ns + YEAR_S * 10**9
    monkeypatch.setattr("boxcar.laptop.results.hashed_before.time.time_ns", lambda: now_ns)
    return found


def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Which files are hashed from here on."""
    found: list[Path] = []
    of_file = digest.of_file
    monkeypatch.setattr(digest, "of_file", lambda path, **o: (found.append(path), of_file(path))[1])
    return found


def known(folder: Path) -> Path:
    """Where it stands that the file was hashed."""
    path = folder.parent.parent / ".boxcar" / "hashed.json"
    before = HashedBefore(path)
    assert before.compare_one(folder, FILE) is None
    before.write_hashes()
    return path


def test_a_file_that_has_not_changed_is_not_hashed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = known(folder), hashed(monkeypatch)
    assert HashedBefore(path).compare_one(folder, FILE) is None
    assert found == []


def test_a_flipped_byte_of_the_same_size_and_time_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file = known(folder), folder / "w.dat"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_bytes(b"W" + DATA[1:])
    os.utime(file, ns=times)
    difference = HashedBefore(path).compare_one(folder, FILE)
    assert difference and "SHA-256" in difference.problem


def test_another_manifest_makes_it_be_hashed(folder: Path) -> None:
    path = known(folder)
    other = FileRecord("w.dat", len(DATA), "ab" * 32)
    assert HashedBefore(path).compare_one(folder, other) is not None


def test_a_file_that_was_written_just_now_is_hashed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = (folder / "w.dat").stat().st_ctime_ns + 1_000_000_000
    monkeypatch.setattr("boxcar.laptop.results.hashed_before.time.time_ns", lambda: now_ns)
    path, found = known(folder), hashed(monkeypatch)
    HashedBefore(path).compare_one(folder, FILE)
    assert found == [folder / "w.dat"]


def test_a_link_in_its_place_is_said(folder: Path) -> None:
    path = known(folder)
    (folder / "w.dat").rename(folder / "elsewhere")
    (folder / "w.dat").symlink_to(folder / "elsewhere")
    difference = HashedBefore(path).compare_one(folder, FILE)
    assert difference and "symbolic link" in difference.problem


@pytest.mark.parametrize("text", ["", "[]", "[1, 7]", "[2, {}]", "\x00", '{"a": 1}'])
def test_what_cannot_be_read_is_as_if_nothing_was_hashed(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = known(folder)
    path.write_text(text)
    found = hashed(monkeypatch)
    assert HashedBefore(path).compare_one(folder, FILE) is None
    assert found == [folder / "w.dat"]


def test_what_one_has_hashed_oneself_is_hashed_again_until_it_is_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, found = HashedBefore(from_disk=True), hashed(monkeypatch)
    for _ in range(2):
        assert before.compare_one(folder, FILE) is None
    assert len(found) == 2
    before.trust()
    assert before.compare_one(folder, FILE) is None and len(found) == 2
    (folder / "w.dat").write_bytes(b"W" + DATA[1:])  # a flipped byte while the person read
    assert before.compare_one(folder, FILE) is not None


def test_a_damaged_file_is_never_written_down_as_hashed(folder: Path) -> None:
    (folder / "w.dat").write_bytes(b"W" + DATA[1:])
    path = folder / "hashed.json"
    before = HashedBefore(path)
    assert before.compare_one(folder, FILE) is not None
    before.write_hashes()
    assert not path.exists()
