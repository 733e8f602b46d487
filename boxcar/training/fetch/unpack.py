"""An archive's regular files, into a folder: nothing outside of it, no links, no devices.

What it leaves is no more than what a person could have put there by hand. A link to a file of the
archive becomes that file.
"""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from boxcar.shared import paths
from boxcar.shared.disk import checked_copy
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.shared.files.manifest import FileRecord

# As of a folder that is sent: beyond that the proof of each file is slower than the data.
MOST_FILES = 200_000
_BLOCK_BYTES = 1 << 20
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
OnBytes = Callable[[int], None]


def unpack(archive: Path, folder: Path, on_bytes: OnBytes) -> tuple[FileRecord, ...]:
    """The files that were written. `on_bytes` is told of the bytes that were written.

    Raises InputError for what is no archive, or holds what is refused; DamagedError for one that
    ends too early; NoRoomError.
    """
    is_zip = zipfile.is_zipfile(archive)
    if not is_zip and not _is_tar(archive):
        raise InputError(f"{archive.name} is neither tar nor zip: leave out unpack")
    written: dict[str, FileRecord] = {}
    try:
        for name, size_bytes, content in (_of_zip if is_zip else _of_tar)(archive, folder):
            if len(written) >= MOST_FILES:
                raise InputError(
                    f"{archive.name} has more than {MOST_FILES:,} files: leave out unpack, and "
                    "read it packed"
                )
            written[name] = _write(folder, name, size_bytes, content, on_bytes)
    except _BROKEN as error:
        raise DamagedError(f"{archive.name}: cannot be unpacked: {error}") from error
    except OSError as error:
        if is_full(error):
            raise NoRoomError(f"{folder}: no room to unpack {archive.name}") from error
        raise DamagedError(f"{archive.name}: cannot be unpacked: {error}") from error
    if not written:
        raise InputError(f"{archive.name}: holds no file")
    return tuple(written.values())


def _is_tar(archive: Path) -> bool:
    try:
        return tarfile.is_tarfile(archive)
    except (EOFError, OSError, zlib.error):  # one that is cut, or another kind of compressed file
        return False


def _of_tar(archive: Path, folder: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    checked_copy.check_room(folder, [archive.stat().st_size])  # at least; a tar does not say it all
    with tarfile.open(archive, "r:*") as opened:
        for member in opened:
            name = _plain(member.name)
            if member.isdir() or not name:
                continue
            if member.isfile() or member.islnk() or member.issym():
                content = _content(opened, member)
                if content is not None:
                    yield name, -1, content
                    continue
            raise InputError(
                f"{archive.name}: {member.name} is a link that leads out of it or to a folder, or "
                "no regular file; nothing was unpacked"
            )


def _content(opened: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """Of a link that of the file which it leads to; None where that is not in the archive."""
    try:
        return opened.extractfile(member)
    except KeyError:
        return None


def _of_zip(archive: Path, folder: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        checked_copy.check_room(folder, [one.file_size for one in members])
        for member in members:
            name, mode = _plain(member.filename), member.external_attr >> 16
            if member.is_dir() or not name:
                continue
            if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                raise InputError(
                    f"{archive.name}: {member.filename} is a link or no regular file; nothing was "
                    "unpacked"
                )
            if member.flag_bits & 1:
                raise InputError(f"{archive.name}: {member.filename} has a password")
            with opened.open(member) as content:
                yield name, member.file_size, content


def _plain(name: str) -> str:
    """`./a/b/` as `a/b`. Raises ValueError for one that is not UTF-8."""
    name.encode()
    return "/".join(part for part in name.split("/") if part != ".").removesuffix("/")


def _write(
    folder: Path, name: str, size_bytes: int, content: IO[bytes], on_bytes: OnBytes
) -> FileRecord:
    path = paths.inside(folder, name)  # raises for one that leads out
    path.parent.mkdir(parents=True, exist_ok=True)
    done, sha256 = 0, hashlib.sha256()
    with path.open("wb") as file:
        while block := content.read(_BLOCK_BYTES):
            done += len(block)
            if 0 <= size_bytes < done:
                raise DamagedError(f"{name}: is larger than its archive says")
            sha256.update(block)
            file.write(block)
            on_bytes(len(block))
    return FileRecord(name, done, sha256.hexdigest())
