"""What a cell has left of an artifact: its files, and what stands in the way of publishing them.

A link that ends inside {out} is followed, also to a folder; one that leads out or dangles is a
problem, as is an artifact that is empty, and {out} itself where it is a link by now. A problem is a
person's to put right: the result is kept.
Pipes, sockets, devices and links to a folder that holds them are left out and named.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import reason_of
from boxcar.shared.sentence import Sentence, _, mark

# Links to links to folders multiply: twenty pairs of them are a million ways.
_MOST_WAYS = 1000
_KINDS = {
    stat.S_IFIFO: mark("a pipe"),
    stat.S_IFSOCK: mark("a socket"),
    stat.S_IFCHR: mark("a device"),
    stat.S_IFBLK: mark("a device"),
}


@dataclass
class Left:
    """Of one artifact. `files` are where the bytes are, by the name below {out}.

    `problems` and `left_out` are sentences that begin with a name. Without files and problems
    nothing of this artifact was written.
    """

    files: dict[str, Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Folder:
    """`name` below {out}, the folder it really is, and the real ones that led there by links."""

    name: str
    path: Path
    above: tuple[Path, ...]


def is_elsewhere(out: Path) -> bool:
    """Whether a link stands in the place of {out}, or of the cell's folder around it: what lies
    there is not what the cell was given.
    """
    return out.is_symlink() or out.parent.is_symlink()


def _kind(mode: int) -> str:
    return _("is {kind}", kind=Sentence(_KINDS.get(stat.S_IFMT(mode), mark("no file"))))


def look(out: Path, artifact: str) -> Left:
    """What is there of the artifact. Raises DamagedError for a path that leaves `out`."""
    return _Look(Path(os.path.realpath(out))).at(artifact)


def look_at_all(out: Path, name: str) -> Left:
    """The same of what is no artifact: it may be empty, and a link to a folder in it is that folder
    a second time, which is not looked into.
    """
    return _Look(Path(os.path.realpath(out)), once=name).at(name)


class _Look:
    def __init__(self, out: Path, once: str = "") -> None:
        self._out, self._once, self._left = out, once, Left()
        self._folders: list[_Folder] = []
        self._ways: Counter[Path] = Counter()

    def at(self, artifact: str) -> Left:
        self._take(artifact, artifact, ())
        while self._folders:
            self._list(self._folders.pop())
        if not self._once:
            self._refuse_empty(artifact)
        return self._left

    def _refuse_empty(self, artifact: str) -> None:
        files, problems = self._left.files, self._left.problems
        if problems or any(path.stat().st_size for path in files.values()):
            return
        if artifact in files:
            problems.append(_("{path} is empty (0 bytes)", path=artifact))
        elif files:
            problems.append(_("{path} holds only empty files", path=artifact))
        elif self._left.left_out:
            problems.append(
                _("{path} holds no file: {why}", path=artifact, why=self._left.left_out[0])
            )
        elif self._ways:
            problems.append(_("{path} is an empty folder", path=artifact))

    def _list(self, folder: _Folder) -> None:
        try:
            names = sorted(path.name for path in folder.path.iterdir())
        except OSError as error:
            self._left.problems.append(
                _("{path} cannot be read: {why}", path=folder.name, why=reason_of(error))
            )
            return
        for name in names:
            path = (folder.path / name).relative_to(self._out).as_posix()
            self._take(f"{folder.name}/{name}", path, (*folder.above, folder.path))

    def _take(self, name: str, relative: str, above: tuple[Path, ...]) -> None:
        """One name; `relative` is where it lies, once the links on the way to it are followed."""
        try:
            path = regular_file.resolve_left(self._out, relative)
            self._keep(name, path, path.stat().st_mode, above)
        except (FileNotFoundError, NotADirectoryError):
            return  # never written, or removed by what is left of the cell
        except OSError as error:
            why = reason_of(error)
            if not isinstance(error, regular_file.StrangeFileError):
                why = _("cannot be read: {error}", error=why)
            self._left.problems.append(_("{path} {problem}", path=name, problem=why))

    def _keep(self, name: str, path: Path, mode: int, above: tuple[Path, ...]) -> None:
        if stat.S_ISDIR(mode):
            self._go_into(name, path, above)
        elif not stat.S_ISREG(mode):
            self._left.left_out.append(_("{path} {problem}", path=name, problem=_kind(mode)))
        elif not os.access(path, os.R_OK):
            self._left.problems.append(_("{path} cannot be read: permission denied", path=name))
        else:
            self._left.files[name] = path

    def _go_into(self, name: str, path: Path, above: tuple[Path, ...]) -> None:
        if self._once and self._is_twice(name, path):
            return
        if any(folder.is_relative_to(path) for folder in above):
            self._left.left_out.append(_("{path} is a link to a folder that holds it", path=name))
            return
        self._ways[path] += 1
        if self._ways[path] > _MOST_WAYS:
            self._left.problems.append(
                _(
                    "{name} is one of more than {most} links to {path}",
                    name=name,
                    most=_MOST_WAYS,
                    path=path,
                )
            )
            return
        self._folders.append(_Folder(name, path, above))

    def _is_twice(self, name: str, path: Path) -> bool:
        return path != self._out / name and path.is_relative_to(self._out / self._once)
