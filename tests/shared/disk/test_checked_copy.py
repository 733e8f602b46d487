from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk import checked_copy as copy
from boxcar.shared.disk.checked_copy import SPARE_BYTES, SPARE_INODES, check_room, checked_copy
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files.manifest import FileRecord

OLD = b"what lay there before"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkpoint of three blocks and a bit, so that a copy takes several turns."""
    path = tmp_path / "scratch" / "best.pth"
    path.parent.mkdir()
    path.write_bytes(os.urandom(3 * digest.BLOCK_BYTES + 17))
    return path


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "durable" / "cells" / "recon_baseline" / "best.pth"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def after_the_copy(monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]) -> None:
    """Let `damage` happen to the copy between its fsync and its being read back."""
    of_file = digest.of_file

    def damaged(path: Path, **options: Any) -> str:
        damage(path)
        return of_file(path, **options)

    monkeypatch.setattr(digest, "of_file", damaged)


@pytest.mark.parametrize(
    "size_bytes", [0, 1, digest.BLOCK_BYTES, digest.BLOCK_BYTES + 1, 5 * digest.BLOCK_BYTES]
)
def test_the_copy_has_the_bytes_and_the_record_says_so(tmp_path: Path, size_bytes: int) -> None:
    data = os.urandom(size_bytes)
    (tmp_path / "source").write_bytes(data)
    record = checked_copy(tmp_path / "source", tmp_path / "to" / "copy", "sub/copy")
    assert (tmp_path / "to" / "copy").read_bytes() == data
    assert record == FileRecord("sub/copy", size_bytes, digest.of_bytes(data))
    assert names(tmp_path / "to") == ["copy"]


def test_progress_tells_every_byte_once_written_and_once_read_back(
    source: Path, destination: Path
) -> None:
    told: list[int] = []
    record = checked_copy(source, destination, "best.pth", told.append)
    assert sum(told) == 2 * record.size_bytes


def test_a_copy_replaces_what_lay_there(source: Path, destination: Path) -> None:
    atomic.make_folder(destination.parent)
    destination.write_bytes(OLD)
    checked_copy(source, destination, "best.pth")
    assert destination.read_bytes() == source.read_bytes()


def flip_one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose_the_tail(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("damage", [flip_one_bit, lose_the_tail])
def test_a_copy_that_reads_back_otherwise_never_takes_its_name(
    source: Path,
    destination: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    atomic.make_folder(destination.parent)
    destination.write_bytes(OLD)
    after_the_copy(monkeypatch, damage)
    with pytest.raises(DamagedError, match="did not read back") as raised:
        checked_copy(source, destination, "best.pth")
    assert str(source) in str(raised.value) and str(destination) in str(raised.value)
    assert names(destination.parent) == ["best.pth"]
    assert destination.read_bytes() == OLD


def test_the_read_back_asks_the_disk_and_not_the_memory(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fsync, forget = os.fsync, digest.forget_cached_pages
    monkeypatch.setattr(os, "fsync", lambda fd: (asked.append("fsync"), fsync(fd)))
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda fd: (asked.append("forget"), forget(fd))
    )
    atomic.make_folder(destination.parent)
    asked.clear()
    checked_copy(source, destination, "best.pth")
    assert asked == ["fsync", "forget", "fsync"]  # the file, its pages, the folder


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_every_way_to_run_out_of_room_is_said_as_no_room(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    atomic.make_folder(destination.parent)

    def refuse(_fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(NoRoomError, match=os.strerror(code)):
        checked_copy(source, destination, "best.pth")
    assert names(destination.parent) == []


def test_another_error_of_the_disk_is_passed_on(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    atomic.make_folder(destination.parent)

    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError) as raised:
        checked_copy(source, destination, "best.pth")
    assert raised.value.errno == errno.EIO
    assert names(destination.parent) == []


def test_a_full_disk_is_said_and_nothing_is_left_there(
    source: Path, small_disk: Callable[[str], Path]
) -> None:
    disk = small_disk("size=2m")
    with pytest.raises(NoRoomError, match="No space left"):
        checked_copy(source, disk / "best.pth", "best.pth")
    assert names(disk) == []
    (disk / "small").write_bytes(b"x" * digest.BLOCK_BYTES)  # the room was given back


@pytest.mark.parametrize("folder", [".", "cells/recon_baseline"])
def test_a_disk_without_inodes_is_said(
    source: Path, small_disk: Callable[[str], Path], folder: str
) -> None:
    disk = small_disk("size=32m,nr_inodes=12")
    use_up_the_inodes(disk)
    before = names(disk)
    with pytest.raises(NoRoomError, match="No space left"):
        checked_copy(source, disk / folder / "best.pth", "best.pth")
    assert names(disk) == before


def use_up_the_inodes(disk: Path) -> None:
    for number in range(20):
        try:
            (disk / f"{number:02}.png").touch()
        except OSError as error:
            assert error.errno == errno.ENOSPC
            return
    raise AssertionError("the disk has more inodes than it was given")


def test_a_source_that_is_not_there_leaves_nothing(tmp_path: Path, destination: Path) -> None:
    with pytest.raises(FileNotFoundError):
        checked_copy(tmp_path / "gone", destination, "best.pth")
    assert names(destination.parent) == []


def test_a_source_that_vanishes_meanwhile_is_copied_to_its_end(
    source: Path, destination: Path
) -> None:
    data = source.read_bytes()
    checked_copy(source, destination, "best.pth", lambda _size: source.unlink(missing_ok=True))
    assert destination.read_bytes() == data


def test_a_folder_is_no_source_and_no_destination(source: Path, destination: Path) -> None:
    with pytest.raises(IsADirectoryError):
        checked_copy(source.parent, destination, "best.pth")
    destination.mkdir()
    with pytest.raises(OSError):
        checked_copy(source, destination, "best.pth")
    assert names(destination.parent) == ["best.pth"] and names(destination) == []


def test_a_copier_that_dies_leaves_no_final_name_and_the_next_one_ends_right(
    source: Path, destination: Path, in_child: Callable[..., int]
) -> None:
    steps = 2 * 4  # each of the four blocks is written and read back
    for step in range(1, steps + 1):
        left = iter([None] * step)

        def die_at_this_step(_size_bytes: int, left: Any = left) -> None:
            next(left)
            if not left.__length_hint__():
                os._exit(9)

        assert in_child(lambda: checked_copy(source, destination, "x", die_at_this_step)) == 9
        assert not destination.exists()
    assert len(names(destination.parent)) == steps
    atomic.remove_unfinished(destination.parent)
    record = checked_copy(source, destination, "best.pth")
    assert names(destination.parent) == ["best.pth"]
    assert digest.of_file(destination) == record.sha256 == digest.of_file(source)


# --- check_room


def test_room_is_checked_in_bytes_with_some_to_spare(small_disk: Callable[[str], Path]) -> None:
    size_bytes = 1024 * 1024
    disk = small_disk(f"size={SPARE_BYTES + 4 * size_bytes}")
    check_room(disk, [size_bytes] * 4)
    with pytest.raises(NoRoomError, match=rf"{disk}: \d+ bytes are free, \d+ are needed"):
        check_room(disk, [size_bytes] * 5)


def test_room_is_checked_in_inodes_too(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk(f"size={2 * SPARE_BYTES},nr_inodes={SPARE_INODES + 20}")
    check_room(disk, [0] * 10)
    with pytest.raises(NoRoomError, match=r"\d+ inodes are free, \d+ are needed"):
        check_room(disk, [0] * 30)


def test_a_disk_that_counts_no_inodes_has_room(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk(f"size={2 * SPARE_BYTES},nr_inodes=0")
    assert os.statvfs(disk).f_files == 0
    copy.check_room(disk, [0] * 1000)


def test_a_large_copy_has_its_bytes_whatever_waits_for_what(tmp_path: Path) -> None:
    data = os.urandom(digest.BLOCK_BYTES) * 19 + b"end"
    (tmp_path / "source").write_bytes(data)
    told: list[int] = []
    record = checked_copy(tmp_path / "source", tmp_path / "copy", "copy", told.append)
    assert record.sha256 == digest.of_bytes(data) == digest.of_file(tmp_path / "copy")
    assert sum(told) == 2 * len(data)
