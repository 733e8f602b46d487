"""`proof.json` beside the files of a data folder: that each of them was read and compared once, and
how it looked then.

The box writes it before the folder gets its name. After that size and time tell whether a file is
still the one that was read; one whose time is another is read again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared import paths
from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.paths import DATA_FILES, DATA_PROOF
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class ProvenFile:
    path: str
    size_bytes: int
    sha256: str
    mtime_ns: int
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> FileRecord:
        return FileRecord(self.path, self.size_bytes, self.sha256)


@dataclass(frozen=True)
class DataProof:
    FORMAT: ClassVar[str] = "data-proof"
    VERSION: ClassVar[int] = 1

    digest: str
    files: tuple[ProvenFile, ...]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def digest_of_files(files: Iterable[FileRecord]) -> str:
    """What names a data folder: paths, sizes and contents of its files, whatever their times."""
    return digest.of_json(sorted([file.path, file.size_bytes, file.sha256] for file in files))


def write_proof(folder: Path, name: str, files: Iterable[FileRecord]) -> None:
    """Of files that were just compared."""
    proven = (
        ProvenFile(file.path, file.size_bytes, file.sha256, _time(folder, file.path))
        for file in files
    )
    atomic.write_whole(folder / DATA_PROOF, codec.to_document(DataProof(name, tuple(proven))))


def give_name(folder: Path, target: Path, files: Collection[FileRecord]) -> None:
    """Make a folder whose files were just compared the data that `target` names. Killed between any
    two lines, the same call again completes it; `target` must not be there.
    """
    write_proof(folder, target.name, files)
    for file in files:  # a slip of a script must not change what others read
        paths.inside(folder / DATA_FILES, file.path).chmod(0o444)
    _sync(folder)
    folder.rename(target)
    atomic.sync_folder(target.parent)


def read_proof(folder: Path) -> DataProof:
    """Raises FileNotFoundError, DamagedError for one that is not this folder's."""
    proof = codec.from_document(
        DataProof, (folder / DATA_PROOF).read_bytes(), str(folder / DATA_PROOF)
    )
    its = digest_of_files(file.record for file in proof.files)
    if not folder.name == proof.digest == its:
        raise DamagedError(_("{folder}: its proof is of other data", folder=folder))
    return proof


def problems_of_data(folder: Path, *, is_thorough: bool = False) -> list[str]:
    """In what a data folder is not as it was proven: by size and time, or read whole. What lies
    beside its files, such as a cache that a script wrote, is nobody's business.
    """
    try:
        proof = read_proof(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [_("it is not there")]
    except (OSError, DamagedError) as error:
        return [str(error)]
    doubtful = [
        file
        for file in proof.files
        if is_thorough or not _looks_the_same(folder / DATA_FILES, file)
    ]
    found = manifest.compare(folder / DATA_FILES, tuple(file.record for file in doubtful))
    if doubtful and not found and not is_thorough:
        _renew(folder, proof)
    return [f"{one.path} {one.problem}" for one in found]


def _renew(folder: Path, proof: DataProof) -> None:
    """With the times as they are now: a disk that was copied has others."""
    files = tuple(replace(one, mtime_ns=_time(folder, one.path)) for one in proof.files)
    atomic.write_whole(folder / DATA_PROOF, codec.to_document(replace(proof, files=files)))


def _looks_the_same(files: Path, file: ProvenFile) -> bool:
    try:
        found = os.lstat(paths.inside(files, file.path))
    except OSError:
        return False
    is_same = (found.st_size, found.st_mtime_ns) == (file.size_bytes, file.mtime_ns)
    return stat.S_ISREG(found.st_mode) and is_same


def _sync(folder: Path) -> None:
    found = [path for path in folder.rglob("*") if not path.is_symlink()]
    files = [path for path in found if path.is_file()]
    folders = [path for path in (*found, folder) if path.is_dir()]
    with TreeSync(folder) as sync:
        sync.make_durable(files, folders, sum(path.stat().st_size for path in files))


def _time(folder: Path, path: str) -> int:
    return paths.inside(folder / DATA_FILES, path).lstat().st_mtime_ns


def stored(root: Path) -> Iterator[Path]:
    """The data folders that have their name."""
    for path in sorted(root.glob("*")) if root.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and (path / DATA_PROOF).exists():
            yield path
