"""Whether what a run will write on this machine has any room at all, before something is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from boxcar.shared.disk import checked_copy


def lacking(folders: Mapping[str, Path]) -> list[str]:
    """A sentence with numbers for each full disk, by what lies there. Raises OSError."""
    found = {what: checked_copy.lack_of_room(nearest(at)) for what, at in folders.items()}
    return [f"{what}: {lack}" for what, lack in found.items() if lack]


def nearest(folder: Path) -> Path:
    """The folder, or the one above it where it will be made."""
    return next(step for step in (folder, *folder.parents) if step.is_dir())
