"""One checkpoint as one file of torch.save: written whole or not at all, believed only when read.

torch writes straight from the tensors' memory into a temporary neighbour; then fsync, rename, fsync
of the folder. What is read must be an intact archive (the CRC of every entry: torch itself loads a
flipped bit without a word), load with weights_only, and say what it is.

Not covered: two programs that write one name, and a disk that lies about fsync.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from boxcar.shared.disk import atomic, checked_copy, digest
from boxcar.shared.disk.mounts import disk_room, is_full
from boxcar.shared.disk.sink import Sink
from boxcar.shared.errors import DamagedError, InputError, NoRoomError

# --- A new file that torch writes: on the disk when it ends, most of it long before.
# So the fsync at its end finds little left to do.


class TorchFile:
    """What torch.save and DCP ask of a file. Keeps the OSError that torch turns into another."""

    def __init__(self, fd: int, on_piece: Callable[[memoryview], None]) -> None:
        self._sink, self._on_piece = Sink(fd), on_piece
        self.size_bytes = 0
        self.error: OSError | None = None

    def write(self, data: memoryview) -> int:
        view = memoryview(data).cast("B")
        try:
            self._sink.write(view)
        except OSError as error:
            self.error = error
            raise
        self.size_bytes += len(view)
        self._on_piece(view)
        return len(view)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """torch asks for it; nothing is buffered here."""

    def close(self) -> None:
        """DCP asks for it; `created` does it."""


@contextlib.contextmanager
def create_torch_file(
    path: str | os.PathLike[str], on_piece: Callable[[memoryview], None] = lambda _: None
) -> Iterator[TorchFile]:
    """For the body to write; its bytes are on the disk afterwards. `on_piece` gets what is written.

    Raises OSError, also where torch made another error of it.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    file = TorchFile(fd, on_piece)
    try:
        yield file
        os.fsync(fd)
    except BaseException:
        if file.error is not None:
            raise file.error from None
        raise
    finally:
        os.close(fd)


FORMAT = "boxcar.checkpoint/1"
BEST_FORMAT = "boxcar.best/1"
# EXDEV: checkpoints/ may be a link to another disk.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)
_ZIP = b"PK\x03\x04"
# Beside the tensors' bytes: names, numbers, and the archive's own entry for each tensor.
_OVERHEAD_BYTES, _ENTRY_BYTES = 256 * 1024, 512


def write(path: Path, content: Mapping[str, Any], *, is_verified: bool = False) -> None:
    """Write plain containers, numbers, text and tensors under `path`, durably, whole or not at all.

    Needs no memory beyond the tensors themselves. `is_verified`: read it back from the disk before
    it takes its name. Raises NoRoomError with the bytes needed and free (nothing of the new file
    stays, and `path` is as it was), DamagedError, and OSError.
    """
    needed_bytes = size_bytes(content)
    _check_room(path, needed_bytes)
    temporary = atomic.temporary_name(path)
    try:
        with create_torch_file(temporary) as file:
            torch.save(content, file)  # type: ignore[arg-type]
        if is_verified:
            check_intact(temporary, from_disk=True)
        temporary.replace(path)
        atomic.sync_folder(path.parent)
    except OSError as error:
        raise _room_error(error, path, needed_bytes) from error
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path, form: str = FORMAT) -> dict[str, Any]:
    """The content, verified; its tensors are mapped from the file and not read into memory.

    Raises DamagedError for a file of ours that is not as it was written, InputError for a file that
    another program wrote.
    """
    check_intact(path)
    return load(path, form)


def load(path: Path, form: str = FORMAT) -> dict[str, Any]:
    """`read` of a file whose bytes somebody has checked just now."""
    try:
        content = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except OSError:
        raise
    # Its bytes are as they were written, so whatever does not load was never ours.
    except Exception as error:
        raise _foreign(path, str(error).strip().splitlines()[0][:120]) from error
    if not isinstance(content, dict) or content.get("format") != form:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise _foreign(path, f"expected {form!r} in it, found {found!r}")
    return content


def check_intact(path: Path, *, from_disk: bool = False) -> None:
    """Raise DamagedError unless every byte of the archive is as its checksums say.

    `from_disk`: as the disk gives them back, and not from the pages that were just written.
    """
    if not _is_archive(path):
        raise DamagedError(f"{path}: is cut off: the end of its archive is missing")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            if from_disk:
                digest.forget_cached_pages(file.fileno())
            broken = archive.testzip()
    # A damaged directory of entries raises nearly anything.
    except Exception as error:
        raise DamagedError(f"{path}: its archive is damaged: {error}") from error
    if broken is not None:
        raise DamagedError(f"{path}: the checksum of {broken} is not that of its bytes")


def set_aside(path: Path) -> Path:
    """Give a refused file a name that nobody loads; it is kept for a person to look at."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.refused-{number}")):
        number += 1
    path.rename(aside)
    atomic.sync_folder(path.parent)
    return aside


def link(source: Path, name: Path) -> None:
    """Let `name` be the same file as `source`, replaced in one instant.

    Where the file system has no hard links, `name` becomes a checked copy.
    """
    temporary = atomic.temporary_name(name)
    try:
        os.link(source, temporary)
        temporary.replace(name)
        atomic.sync_folder(name.parent)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise _room_error(error, name, 0) from error
        checked_copy.checked_copy(source, name, name.name)
    finally:
        # The rename of one name onto another of the same file does nothing and keeps both.
        temporary.unlink(missing_ok=True)


def is_same(one: Path, other: Path) -> bool:
    """Whether both names are one file; False where one is missing."""
    with contextlib.suppress(FileNotFoundError):
        return one.samefile(other)
    return False


def size_bytes(content: object) -> int:
    """About how large the file becomes; a storage that two tensors share counts once."""
    storages = {
        storage.data_ptr(): storage.nbytes()
        for storage in (tensor.untyped_storage() for tensor in tensors(content))
    }
    return sum(storages.values()) + _OVERHEAD_BYTES + _ENTRY_BYTES * len(storages)


def tensors(value: object) -> Iterator[torch.Tensor]:
    """All tensors in nested containers."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def _check_room(path: Path, needed_bytes: int) -> None:
    """A disk that is filled to its last byte also stops the logs of everybody else."""
    room = disk_room(path.parent)
    free_bytes = room.free_bytes_of_root if os.geteuid() == 0 else room.free_bytes
    if free_bytes < needed_bytes:
        raise NoRoomError(_no_room(path, needed_bytes))


def _room_error(error: OSError, path: Path, needed_bytes: int) -> OSError | NoRoomError:
    if not is_full(error):
        return OSError(error.errno, error.strerror, str(path))
    return NoRoomError(f"{_no_room(path, needed_bytes)} ({error.strerror})")


def _no_room(path: Path, needed_bytes: int) -> str:
    free_bytes = disk_room(path.parent).free_bytes
    return (
        f"{path}: about {needed_bytes} bytes are needed to save and {free_bytes} are free; "
        "nothing was written and the checkpoints before it are kept: make room and save again"
    )


def _is_archive(path: Path) -> bool:
    """False for what was an archive and is cut off; raises InputError for what never was one."""
    with path.open("rb") as file:
        begin = file.read(4096)
    if zipfile.is_zipfile(path):
        return True
    # A crash may leave blocks of zeros where the disk never got the data.
    if begin.startswith(_ZIP) or not begin.strip(b"\0"):
        return False
    raise _foreign(path, f"it begins with {begin[:8]!r}")


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path}: is not a checkpoint of boxcar.training ({reason}). It is left as it is: move it "
        "away, or give this training another folder"
    )
