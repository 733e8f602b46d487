"""A folder of files as one file (tar, not compressed), believed only when it was read back."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy, digest, regular_file
from boxcar.shared.disk.checked_copy import OnChunk
from boxcar.shared.disk.sink import Sink
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.sentence import _

# tarfile moves what it holds with each of them: 10 kB or 1 MB take 1.2 to 1.6 times as long.
_BLOCK_BYTES = 128 * 1024


def pack(
    folder: Path,
    names: Sequence[str],
    destination: Path,
    on_chunk: OnChunk | None = None,
) -> FileRecord:
    """Pack these files of `folder` into one; the record of what lies at `destination` now.

    Raises NoRoomError, DamagedError for what does not read back as it was written, OSError.
    """
    size_bytes, sha256 = checked_copy.put(
        destination,
        lambda temporary: _pack(folder, names, temporary, on_chunk),
        f"the packed {folder}",
        on_chunk,
    )
    return FileRecord(destination.name, size_bytes, sha256)


def _pack(
    folder: Path,
    names: Sequence[str],
    temporary: Path,
    on_chunk: OnChunk | None,
) -> tuple[int, str]:
    with temporary.open("xb", buffering=0) as file:
        sink = Sink(file.fileno(), leaves_room=True)
        writer = _Hashed(sink, on_chunk)
        _write(folder, names, writer)
        os.fsync(file.fileno())
    return temporary.stat().st_size, writer.sha.hexdigest()


def unpack(packed: Path, target: Path) -> None:
    """The folder again, whole under its name or not there at all.

    Raises DamagedError for what `pack` has not written, OSError.
    """
    unfinished = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(unfinished, ignore_errors=True)
    atomic.make_folder(unfinished)
    try:
        with tarfile.open(packed, "r:") as archive:
            for member in archive:
                _unpack_one(archive, member, unfinished, packed)
    except tarfile.TarError as error:
        raise DamagedError(
            _("{packed}: is not a folder that was packed: {error}", packed=packed, error=error)
        ) from error
    for folder in [unfinished, *(path for path in unfinished.rglob("*") if path.is_dir())]:
        atomic.sync_folder(folder)
    unfinished.rename(target)
    atomic.sync_folder(target.parent)


def _write(folder: Path, names: Sequence[str], writer: _Hashed) -> None:
    with tarfile.open(  # type: ignore[call-overload]
        fileobj=writer,
        mode="w|",
        format=tarfile.PAX_FORMAT,
        bufsize=_BLOCK_BYTES,
        copybufsize=_BLOCK_BYTES,
    ) as archive:
        for name in names:
            with regular_file.open_left(folder, name) as file:
                member = tarfile.TarInfo(name)
                found = os.fstat(file.fileno())
                # By the times one sees whether an index is newer than what it stands for.
                member.size, member.mtime = found.st_size, int(found.st_mtime)
                archive.addfile(member, file)


def _unpack_one(
    archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, packed: Path
) -> None:
    source = archive.extractfile(member) if member.isreg() else None
    if source is None:
        raise DamagedError(
            _("{packed}: holds {member!r}, which is not a file", packed=packed, member=member.name)
        )
    target = paths.inside(folder, member.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("xb") as file:
        shutil.copyfileobj(source, file, digest.BLOCK_BYTES)
        file.flush()
        os.utime(file.fileno(), (member.mtime, member.mtime))
        os.fsync(file.fileno())


class _Hashed:
    """Takes what is written to a file, and hashes it on the way."""

    def __init__(self, sink: Sink, on_chunk: OnChunk | None) -> None:
        self._sink, self._on_chunk = sink, on_chunk
        self.sha = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha.update(data)
        if self._on_chunk:
            self._on_chunk(len(data))
        self._sink.write(memoryview(data))
        return len(data)
