"""The release's code on the box's own fast disk, so that a run never reads the shared tier for it.

Staged once for each release, under its digest, checked, and never changed after that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Release
from boxcar.shared.message import counted


def check_release(folder: Path) -> Release:
    """The release, once every file of it is as it was pushed. Raises DamagedError."""
    found = release.read(folder)
    _refuse(folder, manifest.compare(folder, found.files))
    return found


def stage_code(folder: Path, found: Release, target: Path) -> None:
    """Copy the release's code to `target`, whole or not at all. Raises OSError, NoRoomError."""
    files = code_files(found)
    if target.is_dir():
        if not manifest.compare(target, files):
            return
        # Somebody wrote into the staged code; the release itself was just found to be right.
        shutil.rmtree(target)
    atomic.make_folder(target.parent)
    for left in target.parent.iterdir():
        if atomic.is_temporary(left.name):
            shutil.rmtree(left)
    checked_copy.check_room(target.parent, (file.size_bytes for file in files))
    unfinished = atomic.temporary_name(target)
    for file in files:
        source = paths.inside(folder / release.CODE, file.path)
        destination = paths.inside(unfinished, file.path)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, destination)
    _refuse(unfinished, manifest.compare(unfinished, files))
    unfinished.rename(target)


def code_files(found: Release) -> tuple[FileRecord, ...]:
    """The files of the user's code, with paths relative to the code folder."""
    head = f"{release.CODE}/"
    return tuple(
        FileRecord(file.path.removeprefix(head), file.size_bytes, file.sha256)
        for file in found.files
        if file.path.startswith(head)
    )


def _refuse(folder: Path, differences: list[manifest.Difference]) -> None:
    if differences:
        told = "; ".join(f"{found.path} {found.problem}" for found in differences[:5])
        raise DamagedError(
            f"{folder}: {counted(len(differences), 'file')} not as pushed: {told}. "
            "Remove the folder and push again."
        )
