"""Which manifest on the tier is the one of a digest, known by what the disk says of it.

There are as many as cells, and each would be opened: all are asked at once, and what the disk says
of all of them is held against what it has said before.
"""

from __future__ import annotations

import base64
import os
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boxcar.laptop.common.kept import stamps
from boxcar.shared.disk import digest, stamp
from boxcar.shared.paths import MANIFEST


class KnownManifests:
    """`new`: how many were looked into since this was written."""

    def __init__(self) -> None:
        self.new = 0
        # Digests by cell, and what the disk says of each, in the same order.
        self._sha256s: dict[str, str] = {}
        self._stamps = array("Q")
        self._since: dict[str, tuple[array[int], str]] = {}

    def __len__(self) -> int:
        return len(self._sha256s.keys() | self._since.keys())

    @contextmanager
    def asking(self, folder: Path) -> Iterator[Callable[[str, str], bool]]:
        """Whether the disk says that a cell's manifest there is still the one of a digest."""
        try:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield lambda cell, sha256: False
            return
        try:
            known = self._as_they_were(below)
            yield lambda cell, sha256: known.get(cell) == sha256 or self._is(below, cell, sha256)
        finally:
            os.close(below)

    def _as_they_were(self, below: int) -> dict[str, str]:
        self._take_up()
        names = [*self._sha256s]
        now = stamps.of_all(below, (f"{name}/{MANIFEST}" for name in names))
        found = {**self._sha256s}
        for at in stamps.unlike(now, self._stamps):
            del found[names[at]]
        return found

    def _is(self, below: int, cell: str, sha256: str) -> bool:
        began_ns, path = time.time_ns(), f"{cell}/{MANIFEST}"
        try:
            # The stamp is from before the bytes were read: who writes meanwhile makes another one.
            seen = [*stamp.of_stat(os.stat(path, dir_fd=below))]
            # Without waiting: a pipe may have taken its place.
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=below)
            try:
                data = os.read(fd, seen[1] + 1)
            finally:
                os.close(fd)
        except OSError:
            return False
        if digest.of_bytes(data) != sha256:
            return False
        row = stamps.of_one(seen)
        if stamp.is_old(row, began_ns):
            self._since[cell] = row, sha256
            self.new += 1
        return True

    def _take_up(self) -> None:
        """What was looked into since stands among the others."""
        if not self._since:
            return
        places = {cell: at for at, cell in enumerate(self._sha256s)}
        for cell, (row, sha256) in self._since.items():
            stamps.put(self._stamps, places.setdefault(cell, len(places)), row)
            self._sha256s[cell] = sha256
        self._since.clear()

    # --- for the file

    def kept(self) -> list[Any]:
        self._take_up()
        numbers = base64.b64encode(self._stamps.tobytes()).decode()
        return [[*self._sha256s], [*self._sha256s.values()], numbers]

    def take(self, kept: list[Any]) -> None:
        """Raises ValueError, TypeError for what is none."""
        cells, sha256s, numbers = kept
        found = array("Q", base64.b64decode(numbers))
        known = dict(zip(cells, sha256s, strict=True))
        if stamps.count(found) != len(known):
            raise ValueError("not a row for each")
        self._sha256s, self._stamps = known, found
