"""A small file that is on the disk before its name and its content are known.

To create a file takes two waits for the disk, or more. One that was laid before, when nobody
waited, is filled and named without an fsync. A power cut soon after takes the name, or leaves it
with what was filled in, or with what was laid: all of it is one sector, so never with a part of
both. Whoever named it makes both durable then, by `atomic.sync_file` and `sync_folder`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from boxcar.shared.disk import atomic

SIZE_BYTES = 512


class Blank:
    """At most one at a time. Its temporary name is like that of `near`, which only its owner uses,
    in a folder of few files, on the file system where it is to be named.
    """

    def __init__(self, near: Path) -> None:
        self._near = near
        self._laid: str | None = None
        self._is_first, self._can_be_named = True, True

    def lay(self, data: bytes) -> None:
        """Unless one lies there, or none can be named here. `data` is what it says until it is
        filled; other than SIZE_BYTES of it cannot be. Raises OSError.
        """
        if self._laid or not self._can_be_named or len(data) != SIZE_BYTES:
            return
        if self._is_first:
            atomic.remove_unfinished_of(self._near)  # of one who was killed
            self._is_first = False
        self._laid = atomic.write_beside(self._near, data)

    def become(self, path: Path, data: bytes) -> bool:
        """Whether it is `path` with `data` from now on. Else that is another's, or to be created as
        ever; or ours, where a file system denies what it has done.
        """
        if self._laid is None or len(data) != SIZE_BYTES:
            return False
        try:
            _fill(self._laid, data)
            return atomic.link_once(self._laid, path)
        except OSError as error:  # whoever creates it in another way finds what is wrong
            self._can_be_named = not atomic.is_linkless(error)
            return False
        finally:
            self.drop()

    def drop(self) -> None:
        if self._laid:
            with contextlib.suppress(OSError):
                atomic.remove(self._laid)
        self._laid = None


def _fill(laid: str, data: bytes) -> None:
    """In its place. Closed before it is named: on NFS others see it then."""
    fd = os.open(laid, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.write(fd, data) < len(data):
            raise OSError(f"{laid}: could not be written whole")
    finally:
        os.close(fd)
