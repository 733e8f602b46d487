"""What has come of a file is kept for the same source and no other, and never believed early."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.errors import NoRoomError
from boxcar.training.fetch import records
from boxcar.training.fetch.records import PartialFile


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 4)
    monkeypatch.setattr(records, "SAVE_EVERY_S", 1000.0)


def begun(
    target: Path, source: str = "s", size_bytes: int = 10, may_resume: bool = True
) -> PartialFile:
    one = PartialFile(target, source, size_bytes)
    one.open(may_resume=may_resume)
    return one


def half(target: Path) -> PartialFile:
    """Of three pieces the middle one has come and was saved."""
    one = begun(target)
    one.write(b"4567", 4)
    assert not one.mark(1)
    one.save()
    return one


def test_pieces_cover_the_file_and_the_last_one_is_known(tmp_path: Path) -> None:
    one = begun(tmp_path / "a")
    assert [one.bounds(i) for i in one.missing] == [(0, 4), (4, 8), (8, 10)]
    assert [one.mark(2), one.mark(0), one.mark(1)] == [False, False, True]
    assert one.done_bytes == 10


def test_a_later_attempt_goes_on_with_what_was_saved(tmp_path: Path) -> None:
    half(tmp_path / "a")
    again = begun(tmp_path / "a")
    assert again.missing == [0, 2] and again.path.read_bytes() == b"\0\0\0\0" + b"4567" + b"\0\0"


def test_what_came_but_was_not_saved_is_fetched_again(tmp_path: Path) -> None:
    one = half(tmp_path / "a")
    one.write(b"0123", 0)
    one.mark(0)
    assert begun(tmp_path / "a").missing == [0, 2]


@pytest.mark.parametrize("why", ["source", "size", "version", "piece", "cut", "gone"])
def test_the_part_of_something_else_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    one = half(tmp_path / "a")
    if why == "piece":
        monkeypatch.setattr(records, "PIECE_BYTES", 5)
    if why == "cut":
        os.truncate(one.path, 6)
    if why == "gone":
        one.path.unlink()
    again = begun(
        tmp_path / "a",
        source="other" if why == "source" else "s",
        size_bytes=11 if why == "size" else 10,
        may_resume=why != "version",
    )
    assert again.done_bytes == 0 and not any(again.path.read_bytes())


def test_the_record_names_no_piece_that_was_not_synced_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = begun(tmp_path / "a")
    one.mark(0)
    monkeypatch.setattr(atomic, "sync_file", lambda path: one._done.add(2))
    one.save()
    record = records.read_part(tmp_path / "a")
    assert record and record.done == (0,)


def test_the_data_is_on_the_disk_before_the_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, done = begun(tmp_path / "a"), list[Path]()
    one.mark(0)
    monkeypatch.setattr(atomic, "sync_file", lambda path: done.append(Path(path)))
    monkeypatch.setattr(atomic, "write_whole", lambda path, data: done.append(Path(path)))
    one.save()
    assert done == [one.path, records.part_record_of(tmp_path / "a")]


@pytest.mark.parametrize("most_bytes", [1, 3])
def test_a_piece_of_which_the_disk_takes_a_part_at_a_time_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:most_bytes], at))
    one = begun(tmp_path / "a")
    one.write(b"4567", 4)
    assert one.path.read_bytes() == b"\0\0\0\0" + b"4567" + b"\0\0"


def test_saving_what_was_never_opened_keeps_a_former_record(tmp_path: Path) -> None:
    half(tmp_path / "a")
    PartialFile(tmp_path / "a", "s", 10).save()
    assert begun(tmp_path / "a").missing == [0, 2]


def test_the_room_that_is_missing_counts_holes(tmp_path: Path) -> None:
    one = PartialFile(tmp_path / "a", "s", 1_000_000)
    assert one.missing_bytes == 1_000_000
    one.open(may_resume=True)
    assert one.missing_bytes == 1_000_000
    one.write(b"x" * 500_000, 0)
    one.mark(0)
    one.save()
    assert one.missing_bytes <= 500_000


def test_a_full_disk_is_said_with_the_bytes_and_what_has_come_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = half(tmp_path / "a")

    def full(fd: int, data: bytes, start: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        monkeypatch.context() as patched,
        pytest.raises(NoRoomError, match="10 bytes are expected"),
    ):
        patched.setattr(os, "pwrite", full)
        one.write(b"0123", 0)
    assert begun(tmp_path / "a").missing == [0, 2]
