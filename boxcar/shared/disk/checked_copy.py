"""Checked copies: a copy is believed only when its bytes were read back and compared.

One pass that copies and hashes, fsync, read back from the disk, compare, rename, fsync of the
folder. A copy that does not match never takes its final name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from boxcar.shared.disk import atomic, digest, pipeline, regular_file
from boxcar.shared.disk.mounts import disk_room, is_full
from boxcar.shared.disk.sink import Sink
from boxcar.shared.errors import DamagedError, NoRoomError, reason_of
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.sentence import _

OnChunk = Callable[[int], None]
# Left free beyond what a copy needs, for journals and other people's small files.
SPARE_BYTES = 64 * 1024 * 1024
SPARE_INODES = 64


def checked_copy(
    source: Path,
    destination: Path,
    name: str,
    on_chunk: OnChunk | None = None,
) -> FileRecord:
    """Copy a file so that what is believed was read back; the record of what lies there now.

    `name` is the path under which the record speaks of it. An existing `destination` is replaced
    whole.

    Raises NoRoomError, DamagedError for a copy that does not read back as it was written,
    and OSError.
    """
    size_bytes, sha256 = put(
        destination,
        lambda temporary: copy_and_hash(source, temporary, on_chunk),
        f"the copy of {source}",
        on_chunk,
    )
    return FileRecord(name, size_bytes, sha256)


def put(
    destination: Path,
    write: Callable[[Path], tuple[int, str]],
    what: str,
    on_chunk: OnChunk | None = None,
) -> tuple[int, str]:
    """Have `write` make a file, which gets its name once it reads back as it was written.

    `write` returns size and SHA-256 of what it wrote, and so does this; `what` is that, for an
    error. Raises NoRoomError, DamagedError, OSError.
    """
    temporary = atomic.temporary_name(destination)
    try:
        atomic.make_folder(destination.parent)
        size_bytes, sha256 = write(temporary)
        read_back = digest.of_file(temporary, from_disk=True, on_chunk=on_chunk)
        if read_back != sha256:
            raise did_not_read_back(destination, what)
        temporary.replace(destination)
    except OSError as error:
        if is_full(error):
            raise no_room(destination, what, error) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
    atomic.sync_folder(destination.parent)
    return size_bytes, sha256


def did_not_read_back(destination: Path, what: str) -> DamagedError:
    return DamagedError(
        _(
            "{destination}: {what} did not read back as it was written. Its source is still the "
            "only good one",
            destination=destination,
            what=what,
        )
    )


def no_room(destination: Path, what: str, error: OSError) -> NoRoomError:
    return NoRoomError(
        _(
            "{destination}: {error} while writing {what}",
            destination=destination,
            error=reason_of(error),
            what=what,
        )
    )


def check_room(folder: Path, sizes_bytes: Iterable[int]) -> None:
    """Raise NoRoomError unless `folder`'s disk has the bytes and inodes for these files."""
    if lacking := lack_of_room(folder, sizes_bytes):
        raise NoRoomError(lacking)


def _in_mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


def lack_of_room(folder: Path, sizes_bytes: Iterable[int] = ()) -> str:
    """What `folder`'s disk lacks for these files and the reserve, with numbers; '' for nothing."""
    sizes = list(sizes_bytes)
    room = disk_room(folder)
    needed_bytes = sum(sizes) + SPARE_BYTES
    if room.free_bytes < needed_bytes:
        return (
            f"{folder}: {_in_mb(room.free_bytes)} are free, {_in_mb(needed_bytes)} are needed "
            f"({_in_mb(SPARE_BYTES)} of them as a reserve)"
        )
    needed_inodes = len(sizes) + SPARE_INODES
    if room.free_inodes is not None and room.free_inodes < needed_inodes:
        return (
            f"{folder}: {room.free_inodes} inodes are free, {needed_inodes} are needed; "
            "many small files use them up before the bytes (df -i)"
        )
    return ""


def copy_and_hash(
    source: Path,
    temporary: Path,
    on_chunk: OnChunk | None,
    *,
    is_synced: bool = True,
) -> tuple[int, str]:
    """Hash while it is read and written, and have the disk begin before all is written.

    Size and SHA-256 of what was read. Not `is_synced`: the caller does that, and reads it back.
    """
    with (
        os.fdopen(regular_file.open_fd(source), "rb", buffering=0) as reader,
        temporary.open("xb", buffering=0) as writer,
    ):
        # A tier may end a file early; a journal may still grow.
        expected_bytes = os.fstat(reader.fileno()).st_size
        fd, sha = reader.fileno(), hashlib.sha256()
        sink = Sink(writer.fileno(), leaves_room=True)
        if expected_bytes <= digest.BLOCK_BYTES:
            size_bytes = _in_turn(fd, (sha.update, sink.write), on_chunk)
        else:
            size_bytes = pipeline.stream(
                fd, [sha.update], digest.BLOCK_BYTES, on_chunk, here=sink.write
            )
        if size_bytes < expected_bytes:
            raise DamagedError(
                _(
                    "{source}: only {size_bytes} of its {expected_bytes} bytes could be read; try "
                    "again",
                    source=source,
                    size_bytes=size_bytes,
                    expected_bytes=expected_bytes,
                )
            )
        if is_synced:
            os.fsync(writer.fileno())
    return size_bytes, sha.hexdigest()


def _in_turn(fd: int, takers: Sequence[pipeline.Take], on_chunk: OnChunk | None) -> int:
    size_bytes = 0
    while block := os.read(fd, digest.BLOCK_BYTES):
        for take in takers:
            take(memoryview(block))
        size_bytes += len(block)
        if on_chunk:
            on_chunk(len(block))
    return size_bytes
