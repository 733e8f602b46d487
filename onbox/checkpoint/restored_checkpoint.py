"""A mirrored checkpoint, put back on scratch where an earlier attempt's is lost.

It comes back whole, under its own name, and only where nothing complete is left to resume from: a
cell never finds parts of two checkpoints.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import is_of_folders, is_pattern, matches
from boxcar.shared.cell import said
from boxcar.shared.disk import checked_copy, packed_folder
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, resume_pointer
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.sentence import _
from onbox.checkpoint.live_checkpoint import Warn, nobody
from onbox.result import left


def restore(
    folder: Path,
    out: Path,
    resume: str,
    warn: Warn = nobody,
    *,
    asked: str | None = None,
    was_left: bool = False,
) -> bool:
    """Bring a mirrored checkpoint back where scratch has none; True where this was done.

    `asked`: the cell's saying. `was_left`: the attempt before saved and left when it was asked to.
    A mirrored checkpoint that `resume` does not mean, or of another saying, is said, and kept.
    Raises DamagedError for a mirror that is not as it was written; it is kept.
    """
    if (
        _has_one(out, resume, was_left=was_left)
        or (pointer := resume_pointer.read_resume_pointer(folder)) is None
    ):
        return False
    if why := _unfit(pointer, out, resume, asked):
        text = _(
            "{cell}: its mirrored checkpoint {path} {why}",
            cell=pointer.cell,
            path=pointer.path,
            why=why,
        )
        warn("resume_unfit", text)
        return False
    if difference := manifest.compare_one(folder, pointer.file):
        raise DamagedError(
            _(
                "{folder}: the mirrored checkpoint {difference} {problem}",
                folder=folder,
                difference=difference.path,
                problem=difference.problem,
            )
        )
    target = paths.inside(out, _name(pointer, resume))
    _remove_part(target)
    if pointer.is_folder:
        packed_folder.unpack(folder / pointer.file.path, target)
        return True
    copied = checked_copy.checked_copy(folder / pointer.file.path, target, target.name)
    if copied.sha256 != pointer.file.sha256:
        target.unlink()
        raise DamagedError(
            _("{folder}: the mirrored checkpoint changed while it was read", folder=folder)
        )
    return True


def _has_one(out: Path, resume: str, *, was_left: bool) -> bool:
    """Of a plain path whatever lies there counts: it is the script's to say that it is bad."""
    if is_pattern(resume):
        return resume_match.chosen(out, resume, at_rest=was_left) is not None
    return paths.inside(out, resume.removesuffix("/")).exists()


def _name(pointer: Resume, resume: str) -> str:
    """Where it belongs below {out}; an old pointer has only the last part of a plain path."""
    return pointer.path if is_pattern(resume) else resume.removesuffix("/")


def _unfit(pointer: Resume, out: Path, resume: str, asked: str | None) -> str:
    """Why it is not put back: line or job may have changed since, or the cell left a link there."""
    if said.sayings_differ(pointer.saying, asked):
        return _("is of another config or line than the cell has now; the cell starts over")
    if is_pattern(resume):
        is_same_kind = pointer.is_folder == is_of_folders(resume)
        if not (is_same_kind and matches(resume, pointer.path)):
            return _("is not what resume: {resume} means now; the cell starts over", resume=resume)
    parent = paths.inside(out, _name(pointer, resume)).parent
    if left.is_elsewhere(out):
        return _("is not put back: {{out}} is a link now")
    if not Path(os.path.realpath(parent)).is_relative_to(os.path.realpath(out)):
        return _("is not put back: {parent} leads out of {{out}}", parent=parent)
    return ""


def _remove_part(target: Path) -> None:
    """Of a match that was cut off nothing may be left beside what comes back in its place."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
