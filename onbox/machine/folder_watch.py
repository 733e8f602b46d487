"""What the kernel tells of folders: by which names something in them may have changed.

It tells of every program's calls, also of one that has ended, before the call returns; so nobody
is waited for. It does not tell of a write under another name of a file (a hard link), nor of what
another host writes; so nothing is proven by it that no look at everything follows.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Collection
from pathlib import Path

from boxcar.shared.disk import atomic, mounts
from onbox.machine import inotify

# inotify's watches are few on older kernels (8,192), and all programs of a user share them.
MOST_FOLDERS = 2000
_HEAD = struct.Struct("iIII")  # which watch, what, a cookie, the length of the name
_READ_BYTES = 1 << 16


class FolderWatch:
    """Watches one folder and some below it at a time, not the files."""

    def __init__(self) -> None:
        self._fd = -1
        self._root = ""
        self._is: tuple[int, int] | None = None  # the root's device and inode
        self._names: dict[int, str] = {}  # by watch: the folder below the root, with a slash

    def begin(self, root: Path, below: Collection[str]) -> None:
        """Watch the root and these folders below it, where the kernel can tell of all of them.

        What changed before is not told. Does nothing where they are watched.
        """
        if self._is_at(root):
            return
        self.end()
        if len(below) >= MOST_FOLDERS:
            return
        mount = mounts.mount_of(root)
        if mount is None or mount.is_remote:
            return
        try:
            self._add(str(root), below)
        except OSError:  # no watches are left, or a folder is none
            self.end()

    def told(self, root: Path) -> set[str] | None:
        """Paths below the root that may have changed since the last call.

        None where nobody can say: it is not watched, one of its folders is another one by now, or
        more happened than the kernel keeps.
        """
        if not self._is_at(root):
            return None
        paths: set[str] = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                if not self._take(os.read(self._fd, _READ_BYTES), paths):
                    self.end()
                    return None
        return paths

    def end(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._root, self._is, self._names = -1, "", None, {}

    def _is_at(self, root: Path) -> bool:
        return self._root == str(root) and self._is == _identity(self._root)

    def _add(self, root: str, below: Collection[str]) -> None:
        """Raises OSError."""
        self._fd = inotify.opened()  # first: where there is none, what follows cannot be imported
        from watchdog.observers.inotify_c import InotifyConstants as Of

        mask = Of.IN_MODIFY | Of.IN_ATTRIB | Of.IN_CLOSE_WRITE | Of.IN_CREATE | Of.IN_DELETE
        mask |= Of.IN_MOVE | Of.IN_DELETE_SELF | Of.IN_MOVE_SELF | Of.IN_DONT_FOLLOW
        for name in ("", *below):
            watch = inotify.add(self._fd, f"{root}/{name}", mask)
            self._names[watch] = f"{name}/" if name else ""
        self._root, self._is = root, _identity(root)
        self._try(Path(root))

    def _try(self, root: Path) -> None:
        """Believed where it tells of a file of ours. Raises OSError."""
        probe = atomic.temporary_name(root / "probe")
        probe.touch()
        probe.unlink()
        if probe.name not in (self.told(root) or ()):
            raise OSError(f"{root}: the kernel tells nothing of it")

    def _take(self, data: bytes, paths: set[str]) -> bool:
        """Add the paths that are told of; whether that is all that there is to say."""
        at = 0
        while at < len(data):
            watch, _, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size + length
            name = data[at - length : at].rstrip(b"\0")
            if not name or watch not in self._names:  # a folder itself, or the queue overflowed
                return False
            paths.add(self._names[watch] + os.fsdecode(name))
        return True


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
