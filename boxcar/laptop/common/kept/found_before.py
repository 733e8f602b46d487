"""What was found to hold of files that have not changed since: for advice, by which nothing is
decided.

What to type next depends on whether `verify` has settled each cell, and whether each receipt here
is the one on the tier. Of a run of 100,000 cells that is ten seconds of reading for each `status`.
It is a cache: lost, damaged or of another Boxcar it is found out anew. The gate, `verify` and
`pull` read the files themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from boxcar.laptop.common.kept import cache_file, stamps
from boxcar.shared.disk import digest, stamp

_SHAPE = ["what", "of"]


class FoundBefore:
    """In `path`, which is read at once; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        if path:
            cache_file.read(path, _SHAPE, self._known.update)

    def holds(self, what: str, of: Callable[[], str], find: Callable[[], bool]) -> bool:
        """Whether it holds of what `of` is the digest of: asked of `find`, unless it was found to
        before. A digest of '' is of nothing that could be known again.
        """
        now = of() if self._path else ""
        if now and self._known.get(what) == now:
            return True
        is_so = find()
        if is_so:
            self.remember({what: now})
        return is_so

    def remember(self, held: Mapping[str, str]) -> None:
        """That each of these was found to hold of what has this digest."""
        if self._path and all(held.values()):
            self._known |= held
            cache_file.write(self._path, _SHAPE, self._known)


def digest_of_stamps(folder: Path, names: Iterable[str]) -> str:
    """Of what the disk says of these in `folder`, and which are not there; '' where one was written
    to so lately that it could be again without another word of the disk. Raises OSError.
    """
    began_ns = time.time_ns()
    below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = stamps.of_all(below, names)
    finally:
        os.close(below)
    is_old = stamp.is_old(stamps.youngest(found), began_ns)
    return digest.of_bytes(found.tobytes()) if is_old else ""
