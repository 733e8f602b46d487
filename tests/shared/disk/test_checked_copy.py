from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import atomic, checked_tree, digest
from boxcar.shared.disk import checked_copy as copy
from boxcar.shared.disk.checked_copy import SPARE_BYTES, SPARE_INODES, check_room, checked_copy
from boxcar.shared.disk.checked_tree import ToCopy, copy_all
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
def test_the_copy_has_the_bytes_and_the_record_says_so(tmp_path, size_bytes):
    data = os.urandom(size_bytes)
    (tmp_path / "source").write_bytes(data)
    record = checked_copy(tmp_path / "source", tmp_path / "to" / "copy", "sub/copy")
    assert (tmp_path / "to" / "copy").read_bytes() == data
    assert record == FileRecord("sub/copy", size_bytes, digest.of_bytes(data))
    assert names(tmp_path / "to") == ["copy"]


def test_progress_tells_every_byte_once_written_and_once_read_back(source, destination):
    told: list[int] = []
    record = checked_copy(source, destination, "best.pth", told.append)
    assert sum(told) == 2 * record.size_bytes


def test_a_copy_replaces_what_lay_there(source, destination):
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
    source, destination, monkeypatch, damage
):
    atomic.make_folder(destination.parent)
    destination.write_bytes(OLD)
    after_the_copy(monkeypatch, damage)
    with pytest.raises(DamagedError, match="did not read back") as raised:
        checked_copy(source, destination, "best.pth")
    assert str(source) in str(raised.value) and str(destination) in str(raised.value)
    assert names(destination.parent) == ["best.pth"]
    assert destination.read_bytes() == OLD


def test_the_read_back_asks_the_disk_and_not_the_memory(source, destination, monkeypatch):
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
def test_every_way_to_run_out_of_room_is_said_as_no_room(source, destination, monkeypatch, code):
    atomic.make_folder(destination.parent)

    def refuse(_fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(NoRoomError, match=os.strerror(code)):
        checked_copy(source, destination, "best.pth")
    assert names(destination.parent) == []


def test_another_error_of_the_disk_is_passed_on(source, destination, monkeypatch):
    atomic.make_folder(destination.parent)

    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError) as raised:
        checked_copy(source, destination, "best.pth")
    assert raised.value.errno == errno.EIO
    assert names(destination.parent) == []


def test_a_full_disk_is_said_and_nothing_is_left_there(source, small_disk):
    disk = small_disk("size=2m")
    with pytest.raises(NoRoomError, match="No space left"):
        checked_copy(source, disk / "best.pth", "best.pth")
    assert names(disk) == []
    (disk / "small").write_bytes(b"x" * digest.BLOCK_BYTES)  # the room was given back


@pytest.mark.parametrize("folder", [".", "cells/recon_baseline"])
def test_a_disk_without_inodes_is_said(source, small_disk, folder):
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


def test_a_source_that_is_not_there_leaves_nothing(tmp_path, destination):
    with pytest.raises(FileNotFoundError):
        checked_copy(tmp_path / "gone", destination, "best.pth")
    assert names(destination.parent) == []


def test_a_source_that_vanishes_meanwhile_is_copied_to_its_end(source, destination):
    data = source.read_bytes()
    checked_copy(source, destination, "best.pth", lambda _size: source.unlink(missing_ok=True))
    assert destination.read_bytes() == data


def test_a_folder_is_no_source_and_no_destination(source, destination):
    with pytest.raises(IsADirectoryError):
        checked_copy(source.parent, destination, "best.pth")
    destination.mkdir()
    with pytest.raises(OSError):
        checked_copy(source, destination, "best.pth")
    assert names(destination.parent) == ["best.pth"] and names(destination) == []


def test_a_copier_that_dies_leaves_no_final_name_and_the_next_one_ends_right(
    source, destination, in_child
):
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


def test_room_is_checked_in_bytes_with_some_to_spare(small_disk):
    size_bytes = 1024 * 1024
    disk = small_disk(f"size={SPARE_BYTES + 4 * size_bytes}")
    check_room(disk, [size_bytes] * 4)
    with pytest.raises(NoRoomError, match=rf"{disk}: [\d.,]+ MB are free, [\d.,]+ MB are needed"):
        check_room(disk, [size_bytes] * 5)


def test_room_is_checked_in_inodes_too(small_disk):
    disk = small_disk(f"size={2 * SPARE_BYTES},nr_inodes={SPARE_INODES + 20}")
    check_room(disk, [0] * 10)
    with pytest.raises(NoRoomError, match=r"\d+ inodes are free, \d+ are needed"):
        check_room(disk, [0] * 30)


def test_a_disk_that_counts_no_inodes_has_room(small_disk):
    disk = small_disk(f"size={2 * SPARE_BYTES},nr_inodes=0")
    assert os.statvfs(disk).f_files == 0
    copy.check_room(disk, [0] * 1000)


def test_a_large_copy_has_its_bytes_whatever_waits_for_what(tmp_path):
    data = os.urandom(digest.BLOCK_BYTES) * 19 + b"end"
    (tmp_path / "source").write_bytes(data)
    told: list[int] = []
    record = checked_copy(tmp_path / "source", tmp_path / "copy", "copy", told.append)
    assert record.sha256 == digest.of_bytes(data) == digest.of_file(tmp_path / "copy")
    assert sum(told) == 2 * len(data)


# --- whole trees


NAMES = [f"part_{number % 3}/{number:02d}.json" for number in range(12)]
LARGE = "weights.pth"


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    """Small files in folders, an empty one, and one that is worth a copy of its own."""
    found = {name: tmp_path / "scratch" / name for name in (*NAMES, "empty", LARGE)}
    for name, path in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "empty" else os.urandom(500 + len(name)))
    found[LARGE].write_bytes(os.urandom(digest.BLOCK_BYTES + 3))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "durable"
    path.mkdir()
    return path


def to_copy(sources: dict[str, Path], folder: Path) -> list[ToCopy]:
    return [ToCopy(source, folder / name, name) for name, source in sources.items()]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_there_and_its_record_says_what_it_is(sources, folder):
    told: list[int] = []
    records = copy_all(folder, to_copy(sources, folder), told.append)
    expected = {name: path.read_bytes() for name, path in sources.items()}
    assert [record.path for record in records] == list(expected)
    assert records == tuple(
        FileRecord(name, len(data), digest.of_bytes(data)) for name, data in expected.items()
    )
    assert files_below(folder) == set(expected)
    assert all((folder / name).read_bytes() == data for name, data in expected.items())
    assert sum(told) == 2 * sum(map(len, expected.values())), "written, and read back"


@pytest.mark.parametrize("at_once", [1, 5, 2000])
def test_any_number_at_once_ends_the_same(sources, folder, monkeypatch, at_once):
    monkeypatch.setattr(checked_tree, "_MOST_AT_ONCE", at_once)
    copy_all(folder, to_copy(sources, folder))
    assert files_below(folder) == set(sources)


def test_a_flipped_bit_in_one_of_them_keeps_all_from_their_names(sources, folder, monkeypatch):
    del sources[LARGE]
    of_file = digest.of_file

    def damaged(path: Path, **options: Any) -> str:
        if path.name.startswith(".07.json"):
            data = bytearray(path.read_bytes())
            data[100] ^= 4
            path.write_bytes(data)
        return of_file(path, **options)

    monkeypatch.setattr(digest, "of_file", damaged)
    with pytest.raises(DamagedError, match=r"07\.json.* did not read back"):
        copy_all(folder, to_copy(sources, folder))
    assert files_below(folder) == set()


def test_nothing_is_read_back_or_named_before_all_is_durable(sources, folder, monkeypatch):
    del sources[LARGE]
    steps: list[str] = []
    forget, replace = digest.forget_cached_pages, Path.replace

    def durable(_self: object, files: list[Path], *_rest: object) -> None:
        steps.append("files" if files else "names")

    monkeypatch.setattr(checked_tree.TreeSync, "make_durable", durable)
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda fd, *_: (steps.append("read"), forget(fd))
    )
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (steps.append("name"), replace(self, to))[1]
    )
    copy_all(folder, to_copy(sources, folder))
    count = len(sources)
    assert steps == ["files", *["read"] * count, *["name"] * count, "names"]


def test_a_source_that_is_not_there_leaves_nothing_unfinished(sources, folder):
    files = to_copy(sources, folder)
    sources[NAMES[5]].unlink()
    with pytest.raises(FileNotFoundError):
        copy_all(folder, files)
    assert not any(atomic.is_temporary(path.name) for path in folder.rglob("*"))


def test_a_full_disk_is_said_and_nothing_of_a_tree_is_left_there(sources, small_disk):
    disk = small_disk("size=16k")
    with pytest.raises(NoRoomError, match="No space left"):
        copy_all(disk, to_copy(sources, disk))
    assert files_below(disk) == set()


def test_what_lay_there_is_replaced(sources, folder):
    (folder / "empty").write_text("old")
    copy_all(folder, to_copy(sources, folder))
    assert (folder / "empty").read_bytes() == b""
