"""What is in the job's data folders, and the digest that names each.

Every file is read once. Later its size, times and inode say that it is the one that was read, which
`.boxcar/` keeps; else a launch would read 20 GB to find that nothing changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.laptop.common.home import Home
from boxcar.laptop.project import data_of_job
from boxcar.laptop.project.project import Project
from boxcar.shared.disk import atomic, digest, regular_file
from boxcar.shared.errors import InputError, reason_of
from boxcar.shared.files import data_proof
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_FORMAT = 1


@dataclass(frozen=True)
class ReadData:
    """A data folder, with what is in its files."""

    name: str
    source: Path
    files: tuple[FileRecord, ...]
    digest: str

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def read_data(project: Project, on_bytes: Callable[[int], None] = lambda _: None) -> list[ReadData]:
    """The job's data as it is now. `on_bytes` is told of each file's bytes, once they are known.

    Raises InputError for a file that cannot be read.
    """
    if not data_of_job.folders_of(project.job):
        return []
    path = Home(project.root).data_read
    known, seen = _read(path), dict[str, Any]()
    made = []
    try:
        for folder in data_of_job.list_data(project.root, project.job):
            records = []
            for name in folder.files:
                records.append(_record(folder.source, name, known, seen))
                on_bytes(records[-1].size_bytes)
            files = tuple(records)
            made.append(
                ReadData(folder.name, folder.source, files, data_proof.digest_of_files(files))
            )
    finally:
        _keep(path, known, known | seen)
    return made


def _record(source: Path, name: str, known: dict[str, Any], seen: dict[str, Any]) -> FileRecord:
    path = source / name
    try:
        os.fsencode(name).decode()
        stamp, began_ns = regular_file.stamp_of_link(path), time.time_ns()
        if stamp is None:
            raise InputError(_("{path}: not a regular file", path=path))
        before = known.get(str(path))
        if before and before[0] == stamp:
            return FileRecord(name, before[1], before[2])
        sha256, size_bytes = digest.of_file(path), path.stat().st_size
    except UnicodeDecodeError:
        said = _("{path}: its name is not UTF-8. Rename it", path=ascii(str(path)))
        raise InputError(said) from None
    except OSError as error:
        why = reason_of(error)
        raise InputError(_("{path}: cannot be read: {why}", path=path, why=why)) from error
    # The stamp is from before the bytes were read: who writes meanwhile makes another one.
    if regular_file.is_old(stamp, began_ns):
        seen[str(path)] = [stamp, size_bytes, sha256]
    return FileRecord(name, size_bytes, sha256)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    is_ours = isinstance(found, list) and len(found) == 2 and found[0] == _FORMAT
    return found[1] if is_ours and isinstance(found[1], dict) else {}


def _keep(path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    """What cannot be written is read again the next time."""
    if after != before:
        with contextlib.suppress(OSError):
            kept = {name: one for name, one in after.items() if Path(name).exists()}
            atomic.make_folder(path.parent)
            atomic.write_whole(path, json.dumps([_FORMAT, kept]).encode())
