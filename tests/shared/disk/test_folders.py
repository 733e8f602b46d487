"""Folders that are packed into one file, and one that is the release's again before it is used."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.shared.disk import digest, packed_folder
from boxcar.shared.disk.proven_folder import ProvenFolder, Seen, shown
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files.manifest import FileRecord

NAMES = ["a.bin", "deep/er/b.bin", os.fsdecode(b"caf\xe9.bin")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_bytes(name.encode(errors="surrogateescape") * 9000)
    return tmp_path / "here"


def test_a_folder_comes_back_as_it_was(folder, tmp_path):
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
def test_nothing_is_unpacked_outside_its_folder(tmp_path, name):
    with tarfile.open(tmp_path / "packed", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(DamagedError, match="leads out of"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")
    assert not (tmp_path / "there").exists() and not (tmp_path / "outside").exists()


def test_links_and_bytes_that_are_no_archive_are_damage(tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "packed", "w") as archive:
        archive.addfile(link)
    with pytest.raises(DamagedError, match="not a file"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")
    (tmp_path / "packed").write_bytes(b"x" * 2000)
    with pytest.raises(DamagedError, match="not a folder that was packed"):
        packed_folder.unpack(tmp_path / "packed", tmp_path / "there")


def test_a_full_disk_is_named_and_leaves_nothing(folder, tmp_path, monkeypatch):
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NoRoomError, match="No space left"):
        packed_folder.pack(folder, NAMES, tmp_path / "packed")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


FILES = {"train.py": b"print(1)\n", "lib/a.py": b"a = 1\n", "lib/deep/b.py": b"b = 2\n"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "release"


@pytest.fixture
def proven(tmp_path: Path, source: Path) -> ProvenFolder:
    records = [FileRecord(n, len(d), digest.of_bytes(d)) for n, d in FILES.items()]
    made = ProvenFolder(
        tmp_path / "staged",
        records,
        lambda file, to: shutil.copy(source / file.path, to),
        "it is another one",
    )
    made.restore()
    return made


def same_length_and_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(bytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def moved_and_linked(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def replaced(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


DAMAGES = {
    "appended": lambda folder: (folder / "train.py").write_bytes(b"print(1)\n# more\n"),
    "same length and time": lambda folder: same_length_and_time(folder / "train.py"),
    "removed": lambda folder: (folder / "train.py").unlink(),
    "a link": lambda folder: moved_and_linked(folder / "train.py"),
    "a folder": lambda folder: replaced(folder / "train.py", Path.mkdir),
    "a pipe": lambda folder: replaced(folder / "train.py", os.mkfifo),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_not_the_releases_any_more_is_named_and_restored(proven, damage):
    DAMAGES[damage](proven.folder)
    assert proven.look().changed == ("train.py",)
    assert proven.restore().changed == ("train.py",)
    assert proven.look().changed == ()
    assert (proven.folder / "train.py").read_bytes() == FILES["train.py"]
    assert not (proven.folder / "train.py").is_symlink()


def test_a_folder_that_became_a_link_is_not_written_through(proven, tmp_path):
    moved_and_linked(proven.folder / "lib")
    outside = tmp_path / "outside"
    (proven.folder / "moved").rename(outside)
    (proven.folder / "lib").unlink()
    (proven.folder / "lib").symlink_to(outside)
    (outside / "a.py").write_bytes(b"mine")
    assert proven.restore().changed == ("lib/a.py", "lib/deep/b.py")
    assert (outside / "a.py").read_bytes() == b"mine"
    assert not (proven.folder / "lib").is_symlink()


def test_a_file_that_was_only_touched_is_hashed_and_is_no_change(proven):
    os.utime(proven.folder / "train.py")
    assert proven.look() == Seen()


def test_a_file_is_hashed_once(proven, monkeypatch):
    monkeypatch.setattr(digest, "of_file", lambda *args: pytest.fail("it was hashed again"))
    assert proven.look() == Seen()


def test_what_lies_beside_the_files_is_named_by_its_topmost_folder_and_stays(proven):
    (proven.folder / "data/x").mkdir(parents=True)
    (proven.folder / "lib/new.txt").write_text("")
    (proven.folder / os.fsdecode(b"\xff")).mkdir()
    added = proven.restore().added
    assert added == ("data/", "lib/new.txt", os.fsdecode(b"\xff/"))
    assert shown(added[-1]) == "\N{REPLACEMENT CHARACTER}/"
    assert (proven.folder / "data/x").is_dir()


def test_bytecode_is_removed_and_not_named(proven):
    for name in ("__pycache__", "lib/deep/__pycache__"):
        (proven.folder / name).mkdir()
        (proven.folder / name / "b.cpython-311.pyc").write_bytes(b"")
    assert proven.look() == Seen()
    assert not list(proven.folder.rglob("__pycache__"))


def test_what_is_named_like_an_unfinished_copy_is_gone_before_the_folder_is_used(proven):
    (proven.folder / ".train.py.00.part").write_text("half")
    (proven.folder / "lib/.data.part").mkdir()
    assert proven.look() == Seen()
    assert (proven.folder / ".train.py.00.part").exists()
    assert proven.restore() == Seen()
    assert not list(proven.folder.rglob("*.part"))


def test_a_release_that_was_changed_itself_is_not_copied(proven, source):
    (proven.folder / "train.py").unlink()
    (source / "train.py").write_bytes(b"print(2)\n")
    with pytest.raises(DamagedError, match=r"train\.py: it is another one"):
        proven.restore()
    assert sorted(path.name for path in proven.folder.iterdir()) == ["lib"]


def test_of_a_folder_that_is_not_there_nothing_is_said_until_it_was_proven(proven):
    other = ProvenFolder(proven.folder.with_name("none"), (), lambda file, to: None, "")
    assert other.look() == Seen()
    shutil.rmtree(proven.folder)
    assert proven.look().changed == tuple(sorted(FILES))
