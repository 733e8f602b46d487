"""What is taken out of an archive: regular files, inside, whole."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from boxcar.shared.errors import BoxcarError, DamagedError, InputError
from boxcar.training.fetch.unpack import unpack


def tar(
    path: Path, *members: tuple[str, bytes | str], mode: str = "w:gz", kind: bytes = b""
) -> Path:
    """Of each name its content, or what its link (`kind`) leads to."""
    with tarfile.open(path, mode) as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = kind, content
                made.addfile(member)
            else:
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
    return path


def out_of(archive: Path) -> dict[str, bytes]:
    folder = archive.parent / "made"
    folder.mkdir()
    files = unpack(archive, folder, lambda _: None)
    return {file.path: (folder / file.path).read_bytes() for file in files}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_all_files_of_a_tar_come(tmp_path: Path, mode: str) -> None:
    made = tar(tmp_path / "a.tar", ("./a/b", b"one"), ("c ü", b""), mode=mode)
    assert out_of(made) == {"a/b": b"one", "c ü": b""}


def test_all_files_of_a_zip_come(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a/b", b"one" * 1000)
        made.writestr("a/", b"")
    assert out_of(tmp_path / "a.zip") == {"a/b": b"one" * 1000}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_to_a_file_of_the_archive_becomes_that_file(tmp_path: Path, kind: bytes) -> None:
    made = tar(
        tmp_path / "a.tar", ("a/b", b"one"), ("a/c", "b" if kind == b"2" else "a/b"), kind=kind
    )
    assert out_of(made) == {"a/b": b"one", "a/c": b"one"}
    assert not (tmp_path / "made" / "a" / "c").is_symlink()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("leads_to", ["/etc/passwd", "../../etc/passwd", "gone", "folder", "me"])
def test_a_link_to_anything_else_is_refused(tmp_path: Path, kind: bytes, leads_to: str) -> None:
    made = tar(tmp_path / "a.tar", ("folder/x", b"1"), ("me", leads_to), kind=kind)
    with pytest.raises(BoxcarError):
        out_of(made)
    assert not (tmp_path / "made" / "me").exists()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_or_pipe_is_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(InputError, match="no regular file"):
        out_of(tar(tmp_path / "a.tar", ("dev", ""), kind=kind))


@pytest.mark.parametrize("name", ["../out", "/etc/x", "a/../../out", "a//b"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DamagedError, match="leads out of"):
        out_of(tar(tmp_path / "a.tar", (name, b"1")))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(name, b"1")
    (tmp_path / "made").rmdir()
    with pytest.raises(DamagedError, match="leads out of"):
        out_of(tmp_path / "a.zip")
    assert not list(tmp_path.parent.glob("out"))


def test_a_symbolic_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        out_of(tmp_path / "a.zip")


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_an_archive_that_ends_too_early_is_damaged(tmp_path: Path, name: str) -> None:
    import os

    path = tmp_path / name
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("a", os.urandom(50_000))
        whole = bytearray(path.read_bytes())
        whole[1000] ^= 1
        path.write_bytes(whole)
    else:
        whole = bytearray(tar(path, ("a", os.urandom(50_000))).read_bytes())
        path.write_bytes(whole[:30_000])
    with pytest.raises(DamagedError, match="cannot be unpacked"):
        out_of(path)


def test_what_is_no_archive_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(InputError, match="leave out unpack"):
        out_of(tmp_path / "a.h5")
