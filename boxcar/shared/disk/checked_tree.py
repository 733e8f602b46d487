"""Many files copied at once with the proof of a checked copy for each, and far fewer waits.

All are written under unfinished names; made durable together; read back from the disk, a few side
by side, and compared; and only then all get their names. A large file goes alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.shared.disk import atomic, checked_copy, digest, tree_sync
from boxcar.shared.disk.checked_copy import OnChunk
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.disk.regular_file import StrangeFileError
from boxcar.shared.disk.tree_sync import TreeSync, make_folders
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.record import dataclass

# Larger ones are worth a copy of their own, which hashes while it writes.
_SMALL_BYTES = 1024 * 1024
# So much waits for one sync, and stands beside what it may replace.
_MOST_AT_ONCE = 2000


@dataclass(frozen=True)
class ToCopy:
    """`name` is the path under which the record speaks of it."""

    source: Path
    destination: Path
    name: str


@dataclass(frozen=True)
class _Written:
    file: ToCopy
    temporary: Path
    size_bytes: int
    sha256: str

    @property
    def record(self) -> FileRecord:
        return FileRecord(self.file.name, self.size_bytes, self.sha256)


def copy_all(
    folder: Path, files: Sequence[ToCopy], on_chunk: OnChunk | None = None
) -> tuple[FileRecord, ...]:
    """Copy them all to places below `folder`, which is there; their records, in their order.

    `on_chunk` is told how many bytes were written, and how many were read back.
    Where this raises, some of the files may be there under their names already, each whole and
    read back. Raises NoRoomError, DamagedError for a copy that does not read back as it was
    written, and OSError, which `named_in` knows the file of.
    """
    records: dict[str, FileRecord] = {}
    for few in _portions([file for file in files if _is_small(file)]):
        records |= {one.file.name: one.record for one in _copy_small(folder, few, on_chunk)}
    for file in files:
        if file.name not in records:
            with _said_of(file):
                records[file.name] = checked_copy.checked_copy(
                    file.source, file.destination, file.name, on_chunk
                )
    return tuple(records[file.name] for file in files)


def named_in(error: OSError, files: Iterable[ToCopy]) -> str:
    """The name of the file that an error of `copy_all` is about; "" where it is about none."""
    about = {error.filename, error.filename2}
    return next(
        (file.name for file in files if {str(file.source), str(file.destination)} & about), ""
    )


def _is_small(file: ToCopy) -> bool:
    with _said_of(file):
        return file.source.stat().st_size <= _SMALL_BYTES


def _portions(files: Sequence[ToCopy]) -> Iterator[Sequence[ToCopy]]:
    return (files[at : at + _MOST_AT_ONCE] for at in range(0, len(files), _MOST_AT_ONCE))


def _copy_small(folder: Path, files: Sequence[ToCopy], on_chunk: OnChunk | None) -> list[_Written]:
    written: list[_Written] = []
    with TreeSync(folder) as sync, _removed_at_last(written):
        folders = dict.fromkeys(file.destination.parent for file in files)
        changed = make_folders(folders)
        for file in files:
            with _said_of(file):
                written.append(_write(file, on_chunk))
        size_bytes = sum(one.size_bytes for one in written)
        sync.make_durable([one.temporary for one in written], sorted(changed), size_bytes)
        tree_sync.run_in_parallel(_check, written)
        if on_chunk:
            on_chunk(size_bytes)
        for one in written:
            one.temporary.replace(one.file.destination)
        sync.make_durable([], list(folders))
    return written


def _write(file: ToCopy, on_chunk: OnChunk | None) -> _Written:
    temporary = atomic.temporary_name(file.destination)
    try:
        size_bytes, sha256 = checked_copy.copy_and_hash(
            file.source, temporary, on_chunk, is_synced=False
        )
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return _Written(file, temporary, size_bytes, sha256)


def _check(one: _Written) -> None:
    if digest.of_file(one.temporary, from_disk=True) != one.sha256:
        raise checked_copy.did_not_read_back(one.file.destination, f"the copy of {one.file.source}")


@contextlib.contextmanager
def _removed_at_last(written: Iterable[_Written]) -> Iterator[None]:
    """Whatever happens, no unfinished name stays."""
    try:
        yield
    finally:
        for one in written:
            one.temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _said_of(file: ToCopy) -> Iterator[None]:
    """An error with both paths, which a write through a descriptor does not know."""
    try:
        yield
    except StrangeFileError:
        raise
    except OSError as error:
        if is_full(error):
            what = f"the copy of {file.source}"
            raise checked_copy.no_room(file.destination, what, error) from error
        both = (str(file.source), None, str(file.destination))
        raise OSError(error.errno, error.strerror, *both) from error
