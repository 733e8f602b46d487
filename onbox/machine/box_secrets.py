"""The secrets of this box as the agent knows them: also those that were replaced while it runs."""

from __future__ import annotations

import contextlib
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.errors import BoxcarError
from boxcar.shared.known_secrets import KnownSecrets
from onbox.machine import credentials


class BoxSecrets:
    """`file` is the box's credentials as its plan spells their path."""

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._stamp: tuple[int, ...] | None = None
        self._values: frozenset[str] = frozenset()
        self._known = KnownSecrets()

    def values(self) -> frozenset[str]:
        self._look()
        return self._values

    def known(self) -> KnownSecrets:
        self._look()
        return self._known

    def _look(self) -> None:
        """A file that cannot be read tells nothing, and no training has its values."""
        with contextlib.suppress(BoxcarError, OSError):
            path = paths.on_box(self._file)
            if (stamp := _stamp(path)) != self._stamp:
                self._values |= credentials.secrets_of(credentials.read(path))
                self._known, self._stamp = KnownSecrets(self._values), stamp


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
