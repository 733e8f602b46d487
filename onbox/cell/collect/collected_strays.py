"""What the job collects and a tracker wrote beside the code: moved into {out}, after each attempt.

Most trackers write into the folder in which the script was started. There the next attempt would
not find it, and `collect` would bring home that of the last one alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared import out_pattern, paths, strays
from onbox.cell import beside, left_artifacts


def move(code: Path, added: Sequence[str], wanted: Sequence[str], out: Path) -> bool:
    """Of what was `added` below `code` all that is wanted, to the same place below `out`; whether
    there was any. Nothing in `out` is overwritten. May be done again. Raises OSError.
    """
    names = [name for one in added for name in _wanted_of(code, one.rstrip("/"), wanted)]
    # A link that a script put in the way would lead the move out of {out}.
    names = [name for name in names if not paths.has_symlink(out, str(Path(name).parent))]
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        _merge(code / name, out / name)
    return bool(names)


def _wanted_of(code: Path, added: str, wanted: Sequence[str]) -> list[str]:
    """The whole of what was added, or what is wanted in it."""
    if strays.is_of(added, wanted):
        return [added]
    names = [name for one in wanted for name in _there(code, one)]
    return [name for name in dict.fromkeys(names) if name.startswith(f"{added}/")]


def _there(code: Path, wanted: str) -> Sequence[str]:
    if out_pattern.is_pattern(wanted):
        return left_artifacts.of_pattern(code, wanted)
    name = wanted.rstrip("/")
    return [name] if (code / name).exists() and not paths.has_symlink(code, name) else []


def _merge(source: Path, target: Path) -> None:
    if not (_is_folder(source) and _is_folder(target)):
        beside.rename(source, beside.free(target))
        return
    for path in list(source.iterdir()):
        _merge(path, target / path.name)
    with contextlib.suppress(OSError):
        source.rmdir()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
