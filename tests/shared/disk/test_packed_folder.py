from __future__ import annotations

import errno
import os
import tarfile
from pathlib import Path

import pytest

from boxcar.shared.disk import digest, packed_folder
from boxcar.shared.errors import DamagedError, NoRoomError

NAMES = ["a.bin", "deep/er/b.bin", os.fsdecode(b"caf\xe9.bin")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_bytes(name.encode(errors="surrogateescape") * 9000)
    return tmp_path / "here"


def test_a_folder_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    chunks: list[int] = []
    packed = tmp_path / "packed"
    record = packed_folder.pack(folder, NAMES, packed, chunks.append)
    assert (record.path, record.size_bytes) == ("packed", packed.stat().st_size)
    assert record.sha256 == digest.of_file(packed)
    assert len(chunks) > 2
    packed_folder.unpack(packed, tmp_path / "there")
    for name in NAMES:
        assert (tmp_path / "there" / name).read_bytes() == (folder / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "packed", "there"]


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_nothing_is_unpacked_outside_its_folder(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "packed", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(DamagedError, match="does not stay inside"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")
    assert not (tmp_path / "there").exists() and not (tmp_path / "outside").exists()


def test_links_and_bytes_that_are_no_archive_are_damage(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "packed", "w") as archive:
        archive.addfile(link)
    with pytest.raises(DamagedError, match="not a file"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")
    (tmp_path / "packed").write_bytes(b"x" * 2000)
    with pytest.raises(DamagedError, match="not a folder that was packed"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")


def test_a_full_disk_is_named_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NoRoomError, match="No space left"):
        packed_folder.pack(folder, NAMES, tmp_path / "packed")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
