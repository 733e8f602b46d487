from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.laptop.run.journals import known_manifests
from boxcar.laptop.run.journals.known_manifests import KnownManifests
from boxcar.shared.disk import digest

DATA = b'{"files": []}'
SHA256 = digest.of_bytes(DATA)
OTHER = digest.of_bytes(b"other")


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    folder = tmp_path / "cells"
    for name in ("a", "b", "c"):
        (folder / name).mkdir(parents=True)
        (folder / name / "manifest.json").write_bytes(DATA)
    return folder


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files were written long ago."""
    now_ns = known_manifests.time.time_ns
    monkeypatch.setattr(known_manifests.time, "time_ns", lambda: now_ns() + 3600 * 10**9)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that were opened."""
    found, open_it = list[str](), os.open

    def opening(path: str, how: int, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            found.append(path.partition("/")[0])
        return open_it(path, how, dir_fd=dir_fd)

    monkeypatch.setattr(known_manifests.os, "open", opening)
    return found


def asked(
    known: KnownManifests, folder: Path, sha256: str = SHA256, cells: str = "abc"
) -> list[bool]:
    with known.asking(folder) as is_same:
        return [is_same(cell, sha256) for cell in cells]


def again(known: KnownManifests) -> KnownManifests:
    """As it is read from its file."""
    made = KnownManifests()
    made.take(known.kept())
    return made


@pytest.mark.usefixtures("later")
def test_one_that_did_not_change_is_not_opened_again(cells: Path, opened: list[str]) -> None:
    known = KnownManifests()
    assert asked(known, cells) == [True] * 3 and opened == ["a", "b", "c"]
    assert (len(known), known.new) == (3, 3)
    assert asked(known, cells) == asked(again(known), cells) == [True] * 3
    assert opened == ["a", "b", "c"]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("change", ["replaced", "written over", "gone", "a pipe"])
def test_only_one_that_changed_is_opened_again(cells: Path, opened: list[str], change: str) -> None:
    known = KnownManifests()
    asked(known, cells)
    opened.clear()
    path = cells / "b/manifest.json"
    if change == "replaced":
        path.with_name("new").write_bytes(b"other")
        path.with_name("new").replace(path)
    elif change == "written over":
        path.write_bytes(b"other")
    else:
        path.unlink()
        if change == "a pipe":
            os.mkfifo(path)
    read = again(known)
    assert asked(read, cells) == [True, False, True]
    assert opened == ([] if change == "gone" else ["b"])
    path.unlink(missing_ok=True)
    path.write_bytes(DATA)
    assert asked(read, cells) == asked(again(read), cells) == [True] * 3
    assert (len(read), read.new) == (3, 1)


@pytest.mark.usefixtures("later")
def test_one_of_another_digest_is_not_the_one_that_is_asked_for(cells: Path) -> None:
    known = KnownManifests()
    asked(known, cells)
    assert asked(known, cells, OTHER) == [False] * 3
    assert asked(known, cells) == [True] * 3


@pytest.mark.usefixtures("later")
def test_each_is_known_by_its_own_row_however_they_came(cells: Path, opened: list[str]) -> None:
    known = KnownManifests()
    asked(known, cells, cells="cab")
    opened.clear()
    (cells / "c/manifest.json").write_bytes(b"other")
    assert asked(again(known), cells) == [True, True, False] and opened == ["c"]


@pytest.mark.usefixtures("later")
def test_one_with_a_time_before_1970_is_opened_each_time(cells: Path, opened: list[str]) -> None:
    known, path = KnownManifests(), cells / "b/manifest.json"
    os.utime(path, (-5, -5))
    assert asked(known, cells) == asked(again(known), cells) == [True] * 3
    assert (opened.count("a"), opened.count("b"), len(known)) == (1, 2, 2)
    path.write_bytes(b"other")
    os.utime(path, (-9, -9))
    assert asked(known, cells) == asked(again(known), cells) == [True, False, True]


@pytest.mark.usefixtures("later")
def test_nothing_stays_open(cells: Path) -> None:
    known, before = KnownManifests(), len([*Path("/proc/self/fd").iterdir()])
    for _ in range(2):
        asked(known, cells)
        asked(known, cells, OTHER)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_one_that_was_just_written_is_opened_each_time(cells: Path, opened: list[str]) -> None:
    known = KnownManifests()
    assert asked(known, cells) == asked(known, cells) == [True] * 3
    assert opened == ["a", "b", "c"] * 2 and len(known) == 0


@pytest.mark.usefixtures("later")
def test_without_the_folder_nothing_is_known(cells: Path) -> None:
    known = KnownManifests()
    asked(known, cells)
    assert asked(known, cells.with_name("none")) == [False] * 3
    assert asked(known, cells) == [True] * 3


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda cells, sha256s, rows: [cells[1:], sha256s[1:], rows],
        lambda cells, sha256s, rows: [cells, sha256s[1:], rows],
        lambda cells, sha256s, rows: [cells, sha256s, rows[4:]],
        lambda cells, sha256s, rows: [cells, sha256s, "x"],
        lambda cells, sha256s, rows: [cells, sha256s, None],
        lambda cells, sha256s, rows: [cells, sha256s],
    ],
)
def test_what_is_no_row_for_each_is_not_taken(cells: Path, spoil) -> None:
    known = KnownManifests()
    asked(known, cells)
    with pytest.raises((ValueError, TypeError)):
        KnownManifests().take(spoil(*known.kept()))
