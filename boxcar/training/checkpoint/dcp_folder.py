"""One sharded checkpoint as one folder, written by torch.distributed.checkpoint (DCP).

The folder appears under its name when every rank's shard is on the disk: all is written into
`.<name>.<random>.saving` beside it, `complete.json` (each file's size and CRC-32) comes last, then
the rename. A folder that exists is never written again: DCP over an old checkpoint is loadable
only by luck when the process dies in the middle.

All ranks call `save`, `copy_and_save` and `load` together and in the same order; every error is the
same on all of them. The folder lies where all ranks see it. `state_dict` is nested dicts and lists
of tensors, DTensors, numbers and text; a plain value is saved once, so what differs from rank to
rank needs a key of its own.

Not covered: two jobs that save under one name, and a disk that lies about fsync. The plans that DCP
itself sends from rank to rank are pickles.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from boxcar.shared import paths
from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError
from boxcar.shared.files import codec
from boxcar.training.checkpoint import dcp_files
from boxcar.training.checkpoint.behind import copy_to_cpu
from boxcar.training.checkpoint.dcp_files import Written
from boxcar.training.ranks import side_group
from boxcar.training.ranks.side_group import SideGroup

COMPLETE = "complete.json"
_SUFFIX = ".saving"


@dataclass(frozen=True)
class File:
    name: str
    size_bytes: int
    crc32: str = field(default="", metadata=codec.LATER)
    sha256: str = field(default="", metadata=codec.LATER)
    """Of version 1 alone, which has no crc32."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Complete:
    """`complete.json`: what lies in the folder. Rank 0 writes it, everybody who loads reads it."""

    FORMAT: ClassVar[str] = "sharded"
    VERSION: ClassVar[int] = 2

    world: int
    torch: str
    files: tuple[File, ...]
    extra: dict[str, Any] = field(default_factory=dict)


def save(folder: str | Path, state_dict: dict[str, Any]) -> None:
    """Write a new checkpoint; when this returns it is on the disk under its name.

    Raises InputError where the folder exists, NoRoomError where the disk is full.
    """
    _wait_for_pending()
    side = _side()
    _write(Path(folder), _begin(Path(folder), side), state_dict, side)


def copy_and_save(folder: str | Path, state_dict: dict[str, Any]) -> Callable[[], Future[float]]:
    """Copy the state to CPU memory now; what is returned begins to write it, in a thread.

    Its `.result()` ends when it is there, and is the seconds that this rank's thread took; a save
    that failed says so there alone. Waits for the save before it: two copies of the state would
    fill the memory (one takes as many bytes as the rank's shards). Ask for the last result before
    the process group is destroyed.
    """
    _wait_for_pending()
    side = _side()
    unfinished = _begin(Path(folder), side)
    copied, wait_for_copy = copy_to_cpu(state_dict)

    def write() -> float:
        wait_for_copy()
        return _write(Path(folder), unfinished, copied, side)

    def begin() -> Future[float]:
        _pending.append(_thread.submit(write))
        return _pending[-1]

    return begin


def load(folder: str | Path, state_dict: dict[str, Any], *, is_checked: bool = False) -> None:
    """Fill `state_dict` in place, whatever the world size it was saved with.

    Each rank checks size and CRC-32 of its share of the files, unless a load just before has done
    so (`is_checked`). The top-level keys of
    `state_dict` must be in the checkpoint with exactly the same keys, shapes and dtypes below them;
    those of the checkpoint that are not asked for are left alone. Raises DamagedError or
    InputError before anything in `state_dict` has changed. No pickle of the folder is trusted.
    """
    _wait_for_pending()
    folder, side = Path(folder), _side()
    doing = f"{folder}: loading"
    if not is_checked:
        side.everywhere(_plain_errors(doing)(lambda: _check_files(folder, side)))
    reader = dcp_files.Reader(folder)
    side.everywhere(_plain_errors(doing)(lambda: _check_fit(folder, state_dict, reader)))
    with _plain_errors(doing), side.waiting():
        dcp.load(
            state_dict,
            storage_reader=reader,
            planner=dcp_files.PlainLoads(),
            process_group=side.group,
        )


def is_complete(folder: str | Path) -> bool:
    """Whether a save ended here and every file has its size still. One process may ask alone."""
    try:
        _check_sizes(Path(folder), read_complete(Path(folder)))
    except (DamagedError, OSError):
        return False
    return True


def check_on_disk(folder: Path) -> None:
    """Raise DamagedError unless the disk gives every file back as it was written. One process may
    ask alone.
    """
    complete = read_complete(folder)
    _check_sizes(folder, complete)
    for file in complete.files:
        _check_bytes(folder, file, from_disk=True)


def read_complete(folder: Path) -> Complete:
    """Raises DamagedError where there is none: then the folder holds no whole checkpoint."""
    path = folder / COMPLETE
    try:
        return codec.from_document(Complete, path.read_bytes(), str(path))
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedError(
            f"{folder}: no {COMPLETE} here, so this is not a complete sharded checkpoint; "
            "load the one before it"
        ) from None


def remove_unfinished(parent: str | Path) -> None:
    """Remove what killed saves left in `parent`. For rank 0 alone, while nothing is being saved."""
    for path in Path(parent).glob(f".*{_SUFFIX}"):
        shutil.rmtree(path, ignore_errors=True)


# One thread, so that saves of one rank never pass each other.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="boxcar-save")
_pending: list[Future[float]] = []
_sides: list[SideGroup] = []  # none or one


def _wait_for_pending() -> None:
    """Collectives of two threads on one group would meet each other's messages on other ranks."""
    with side_group.patient():
        wait(_pending)
    _pending.clear()


def _side() -> SideGroup:
    """A line for saving alone, made once for each process group.

    Any other would mix the thread's messages with those of the step, or with what the ranks agree
    on beside it.
    """
    if not _sides or not _sides[0].is_current:
        _sides[:] = [SideGroup()]
    return _sides[0]


def _begin(folder: Path, side: SideGroup) -> Path:
    """The fresh folder to write into, made by rank 0."""
    make = _plain_errors(f"{folder}: saving")(lambda: str(_make(folder)))
    return Path(side.on_main(make))


def _make(folder: Path) -> Path:
    if os.path.lexists(folder):
        raise InputError(
            f"{folder}: exists already; every save needs a new folder, such as step_00000120"
        )
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_SUFFIX}")
    atomic.make_folder(folder.parent)
    unfinished.mkdir()
    return unfinished


def _write(folder: Path, unfinished: Path, state_dict: dict[str, Any], side: SideGroup) -> float:
    """Seconds that it took."""
    started_s = time.monotonic()
    doing = f"{folder}: saving"
    try:
        with _plain_errors(doing), side.waiting():
            publish = functools.partial(_publish, folder, unfinished, side.world)
            dcp.save(
                state_dict,
                storage_writer=dcp_files.Writer(unfinished, publish),
                planner=dcp_files.PlainSaves(),
                process_group=side.group,
            )
    except BaseException:
        if side.rank == 0:
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return time.monotonic() - started_s


def _publish(folder: Path, unfinished: Path, world: int, written: list[Written]) -> None:
    """Rank 0, once all of it is on the disk."""
    files = tuple(File(one.name, one.size_bytes, f"{one.crc32:08x}") for one in written)
    complete = Complete(world, torch.__version__, files)
    try:
        _check_sizes(unfinished, complete)
    except DamagedError as error:
        raise InputError(
            f"{error}. Rank 0 does not see what the other ranks wrote: "
            "a sharded checkpoint needs a folder that all nodes share"
        ) from error
    atomic.write_whole(unfinished / COMPLETE, codec.to_document(complete))
    if os.path.lexists(folder):  # a rename would replace an empty folder
        raise InputError(f"{folder}: was made by somebody else while this checkpoint was saved")
    unfinished.rename(folder)
    atomic.sync_folder(folder.parent)


def _check_files(folder: Path, side: SideGroup) -> None:
    complete = read_complete(folder)
    _check_sizes(folder, complete)
    by_size = sorted(complete.files, key=lambda file: (-file.size_bytes, file.name))
    for file in by_size[side.rank :: side.world]:
        _check_bytes(folder, file)


def _check_bytes(folder: Path, file: File, *, from_disk: bool = False) -> None:
    path = folder / file.name
    if file.sha256:
        kind, is_same = "sha256", digest.of_file(path, from_disk=from_disk) == file.sha256
    else:
        found = digest.crc32_of_file(path, from_disk=from_disk)
        kind, is_same = "CRC-32", f"{found:08x}" == file.crc32
    if not is_same:
        raise DamagedError(
            f"{path}: its {kind} is not the one in {COMPLETE}; load the checkpoint before this one"
        )


def _check_sizes(folder: Path, complete: Complete) -> None:
    for file in complete.files:
        path = paths.inside(folder, file.name)
        found = path.stat().st_size if path.is_file() else None
        if found != file.size_bytes:
            seen = "it is missing" if found is None else f"found {found}"
            raise DamagedError(f"{path}: expected {file.size_bytes} bytes, {seen}")


def _check_fit(folder: Path, state_dict: dict[str, Any], reader: dcp_files.Reader) -> None:
    metadata = reader.check({file.name for file in read_complete(folder).files})
    if problems := dcp_files.differing_entries(state_dict, metadata):
        raise InputError([f"{folder}: is not a checkpoint of this state:", *problems])


@contextmanager
def _plain_errors(doing: str, rank: int | None = None) -> Iterator[None]:
    """DCP's CheckpointException is no Exception and hides the one error that matters."""
    try:
        with warnings.catch_warnings():
            # Without a process group DCP saves and loads alone, and warns of it.
            warnings.filterwarnings("ignore", message="torch.distributed is .*unavailable")
            yield
    except CheckpointException as error:
        rank, (cause, _) = min(error.failures.items())
        raise _said(cause, f"{doing} failed on rank {rank}: {cause}") from error
    except OSError as error:
        where = "" if rank is None else f" on rank {rank}"
        raise _said(error, f"{doing} failed{where}: {error}") from error


def _said(cause: BaseException, text: str) -> BaseException:
    if isinstance(cause, BoxcarError):
        return cause
    if is_full(cause):
        return NoRoomError(f"{text}. Nothing was written under the checkpoint's name; make room")
    return BoxcarError(text)
