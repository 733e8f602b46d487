"""Writes that are whole or not at all, also after a power cut.

Guarantee of `write_whole` and `create_once`: when the call has returned, the content is on the
disk under its name; when it has not, the name holds what it held before. Temporary name in the same
folder, flush, fsync, rename (or link), fsync of the folder. Each of these steps was seen to lose
data when it was left out.

Not covered: a disk that lies about fsync, and two writers of one file (each file has one writer).
"""

from __future__ import annotations

import errno
import itertools
import os

# Not typing's: an attempt's wrapper imports this, and as little as can be.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path | str, data: bytes, *, mode: int = 0o644) -> None:
    """Replace the content of `path` by `data`, whole or not at all. Raises OSError."""
    replace_by(path, data, mode=mode)
    sync_folder(_folder(path))


def replace_by(path: Path | str, data: bytes, *, is_synced: bool = True, mode: int = 0o644) -> None:
    """The same without the folder's fsync: after a power cut either content may stand there.

    Not `is_synced`: nor with the file's, for what another boot makes void. Raises OSError.
    """
    temporary = _write_beside(path, data, mode, is_synced=is_synced)
    try:
        os.replace(temporary, path)  # noqa: PTH105  (as below)
    except BaseException:
        _remove(temporary)
        raise


def create_once(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Create `path` with `data` unless it exists; True where this call created it.

    Of any number of processes and hosts that call at once, exactly one gets True, and nobody ever
    sees the name without its whole content. This needs hard links; on a file system without them
    O_EXCL is used instead, where a crash may leave an empty file, which readers call damaged.
    """
    temporary = _write_beside(path, data, mode)
    try:
        if not _link_once(temporary, path):
            return False
    except OSError as error:
        if not _is_linkless(error):
            raise
        return _create_exclusively(path, data, mode)
    finally:
        _remove(temporary)
    sync_folder(path.parent)
    return True


def _link_once(temporary: str, path: Path) -> bool:
    """Give `temporary` this name, too; False where it is another's. Raises OSError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        # NFS may have lost the answer to a link that it made, and been asked again. The number of
        # names proves nothing: who copies a tier by links gives it one more.
        return os.path.samefile(temporary, path)  # noqa: PTH121  (as below)
    return True


def _is_linkless(error: OSError) -> bool:
    """Whether it says that there can be no hard link."""
    return error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


def append(path: Path, data: bytes) -> None:
    """Append in one write and fsync. A crash may leave a part of `data` at the end.

    Where it fails (a full disk), what was written of it is taken back, so that what is appended
    later does not follow half a line.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    size_bytes = os.fstat(fd).st_size
    try:
        _write_all(fd, data)
        os.fsync(fd)
        if size_bytes == 0:  # perhaps new, or its name was never made durable
            sync_folder(path.parent)
    except OSError as error:
        # Unless somebody else has appended since, as a person may to a queue file.
        if os.fstat(fd).st_size <= size_bytes + len(data):
            os.ftruncate(fd, size_bytes)
        raise _named(error, path) from error
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """Create `path` and its missing parents, and make their names durable."""
    missing = missing_steps(path)
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def missing_steps(folder: Path) -> list[Path]:
    """The folder and its parents, from below, as far as they are not there yet."""
    steps = (folder, *folder.parents)
    return [*itertools.takewhile(lambda step: not step.exists(), steps)]


def make_folder_on_tier(path: Path, tier: Path) -> None:
    """The same below a folder that is there already. Raises FileNotFoundError where it is not.

    A tier that was unmounted leaves an empty folder: what is written there fills the system disk,
    and is hidden once the tier is mounted again.
    """
    if not tier.is_dir():
        why = "it is not there: is the durable tier mounted?"
        raise FileNotFoundError(errno.ENOENT, why, str(tier))
    make_folder(path)


def sync_folder(path: Path | str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network and FUSE file systems cannot fsync a folder, and say so.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise _named(error, path) from error
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        raise _named(error, path) from error
    finally:
        os.close(fd)


def is_temporary(name: str) -> bool:
    """Whether a file name is one of this module's unfinished writes."""
    return name.startswith(".") and name.endswith(".part")


def temporary_name(path: Path) -> Path:
    """A fresh name in the same folder, so that rename works. Random: hosts may share the folder."""
    return path.with_name(_temporary(path.name))


def _temporary(name: str) -> str:
    # 255 bytes is the longest name; a cut in the middle of a letter is only left out.
    start = name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return f".{start}.{os.urandom(4).hex()}.part"


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed writer left in and below `folder`, for the one who writes there."""
    for path in folder.rglob(".*.part"):
        path.unlink(missing_ok=True)


def remove_unfinished_of(path: Path) -> None:
    """The same for one file, where others write beside it. For its one writer."""
    import glob

    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        left.unlink(missing_ok=True)


def _write_beside(path: Path | str, data: bytes, mode: int, *, is_synced: bool = True) -> str:
    """By texts and not by Paths, whose module costs an attempt's wrapper a fifth of its start."""
    temporary = f"{_folder(path)}/{_temporary(os.path.basename(path))}"  # noqa: PTH119
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        _write_all(fd, data)
        if is_synced:
            os.fsync(fd)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError):
            raise _named(error, path) from error
        raise
    finally:
        os.close(fd)
    return temporary


def _folder(path: Path | str) -> str:
    return os.path.dirname(path) or "."  # noqa: PTH120


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return


def _create_exclusively(path: Path, data: bytes, mode: int) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return False
    try:
        _write_all(fd, data)
        os.fsync(fd)
    except BaseException as error:
        path.unlink()
        if isinstance(error, OSError):
            raise _named(error, path) from error
        raise
    finally:
        os.close(fd)
    sync_folder(path.parent)
    return True


def _named(error: OSError, path: Path | str) -> OSError:
    """The same error with its path, which a write through a descriptor does not know."""
    return OSError(error.errno, error.strerror, str(path))


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
