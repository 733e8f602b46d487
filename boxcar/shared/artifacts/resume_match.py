"""Which checkpoint a cell resumes from: the newest complete match of the job's `resume`.

`resume` is a plain path or a pattern (out_pattern.py). The newest match is the one with the
highest number in its name; of equal ones, the one that was changed last.

Complete is what stood still over two looks and is whole (seen_checkpoint.py). A link is followed
only where it ends inside {out}.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.shared.artifacts.file_kinds import ZIP, has_zip_end
from boxcar.shared.artifacts.seen_checkpoint import Seen, SeenFile
from boxcar.shared.disk import regular_file
from boxcar.shared.disk.regular_file import StrangeFileError

# A pattern of `resume` or `artifacts` of a job, which means files or folders below {out}.
#
# In each part of the path `*` stands for any characters and `?` for one; nothing else is special. A
# pattern that ends with `/` is of folders, any other of files. Without `*` and `?` it is plain.
#
# What a killed save leaves is no match: its name begins with a dot, or has a part that says it, as
# orbax' `300.orbax-checkpoint-tmp`. A pattern that spells such a part itself means it.


_WILD = re.compile(r"[*?]")
_UNFINISHED = re.compile(r"(^|[.\-_])(tmp|unfinished)([.\-_]|$)|\.part$", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+")


def is_pattern(resume: str) -> bool:
    return bool(_WILD.search(resume))


def is_of_folders(resume: str) -> bool:
    return resume.endswith("/")


def parts(resume: str) -> list[str]:
    return resume.removesuffix("/").split("/")


def matches(resume: str, name: str) -> bool:
    """Whether `resume` means what has this name below {out}, if it is of the right kind."""
    names, wanted = name.split("/"), parts(resume)
    return len(names) == len(wanted) and all(map(part_matches, wanted, names))


def part_matches(part: str, name: str) -> bool:
    """The same of one part of each."""
    if not is_pattern(part):
        return part == name
    says_dot = part.startswith(".")
    is_hidden = name.startswith(".") and not says_dot  # as a shell has it
    is_unfinished = _UNFINISHED.search(name) and not (says_dot or _UNFINISHED.search(part))
    if is_hidden or is_unfinished or not name.isprintable():
        return False
    wild = {"*": ".*", "?": "."}
    return bool(re.fullmatch("".join(wild.get(char, re.escape(char)) for char in part), name))


def numbers(name: str) -> tuple[int, ...]:
    """Those in a name, in their order: what is compared to see which match is newer."""
    return tuple(map(int, _NUMBER.findall(name)))


_GONE = (FileNotFoundError, NotADirectoryError)


def down_to_whole(matches: Iterable[Seen], at_ns: int) -> list[Seen]:
    """The first look: of matches, newest first, those down to one that may be complete."""
    looked_at = []
    for seen in matches:
        looked_at.append(seen)
        if seen.is_whole(at_ns):
            break
    return looked_at


def newest_complete(before: Sequence[Seen], now: Iterable[Seen], at_ns: int) -> Seen | None:
    """The second look: the first of `now`, newest first, that is whole and was so `before`."""
    return next((seen for seen in now if seen.is_whole(at_ns) and seen in before), None)


def chosen(out: Path, resume: str | None, *, at_rest: bool = False) -> Path | None:
    """The checkpoint to resume from, or None where there is none. Raises OSError.

    For a plain path that path, where something lies there that is not empty, as a script takes it;
    for a pattern its newest complete match. To be asked between attempts, when nobody writes.
    `at_rest`: who wrote there had time to end it, so that no folder needs to be a minute old.
    """
    if resume is None:
        return None
    if not is_pattern(resume):
        with contextlib.suppress(StrangeFileError):
            if any(seen.size_bytes for seen in find_checkpoints(out, resume)):
                return out.joinpath(*parts(resume))
        return None
    at_ns = sys.maxsize if at_rest else time.time_ns()
    before = down_to_whole(find_checkpoints(out, resume), at_ns)
    found = newest_complete(before, find_checkpoints(out, resume), at_ns)
    return out / found.name if found else None


def find_checkpoints(out: Path, resume: str) -> Iterator[Seen]:
    """What `resume` means now, newest first. Raises OSError.

    Raises StrangeFileError for a plain path that is a link out of `out`; a match of a pattern that
    is one does not count.
    """
    for name in newest_first(out, resume):
        try:
            seen = look_at(out, name)
        except StrangeFileError:
            if not is_pattern(resume):
                raise
            continue
        if seen and _is_meant(resume, seen):
            yield seen


def look_at(out: Path, name: str) -> Seen | None:
    """What has this very name; None where nothing has, or a pipe. Raises as `look`, for a link."""
    try:
        path = regular_file.resolve_left(out, name)
        return _seen(name, path, path.stat())
    except _GONE:
        return None


def of_other_kind(out: Path, resume: str) -> str | None:
    """The newest folder that a pattern of files matches too, or the newest such file."""
    if not is_pattern(resume):
        return None
    other = resume.rstrip("/") if is_of_folders(resume) else f"{resume}/"
    return next((seen.name for seen in find_checkpoints(out, other)), None)


def _is_meant(resume: str, seen: Seen) -> bool:
    """A plain path may be of either kind, as a script makes it."""
    if is_of_folders(resume):
        return seen.is_folder
    return not (seen.is_folder and is_pattern(resume))


def newest_first(out: Path, resume: str) -> list[str]:
    """The names that match, whatever has them: those with the highest numbers, or changed last."""
    names = [""]
    for part in parts(resume):
        names = [below for name in names for below in _below(out, name, part)]

    def age(name: str) -> tuple[tuple[int, ...], int]:
        return numbers(name), _mtime_ns(out, name)

    return sorted(names, key=age, reverse=True)


def _below(out: Path, name: str, part: str) -> Iterator[str]:
    head = f"{name}/" if name else ""
    if not is_pattern(part):
        yield head + part
        return
    with contextlib.suppress(*_GONE, StrangeFileError):
        folder = regular_file.resolve_left(out, name) if name else out
        names = [path.name for path in folder.iterdir()]
        yield from (head + found for found in names if part_matches(part, found))


def _mtime_ns(out: Path, name: str) -> int:
    try:
        return (out / name).lstat().st_mtime_ns
    except OSError:
        return 0


def _seen(name: str, path: Path, found: os.stat_result) -> Seen | None:
    if stat.S_ISDIR(found.st_mode):
        return Seen(name, path, tuple(_files_below(path)), is_folder=True)
    if not stat.S_ISREG(found.st_mode):
        return None
    return Seen(name, path, (_file(path.name, found),), opens=_opens(path))


def _files_below(folder: Path) -> Iterator[SeenFile]:
    """Its links too: whoever packs the folder follows them, or says that it cannot."""
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                yield _file(path.relative_to(folder).as_posix(), found)


def _file(name: str, found: os.stat_result) -> SeenFile:
    return SeenFile(name, found.st_size, found.st_mtime_ns, found.st_ino)


def _opens(path: Path) -> bool:
    try:
        with regular_file.open_at(path) as file:
            return file.read(len(ZIP)) != ZIP or has_zip_end(file)
    except OSError:
        return False
