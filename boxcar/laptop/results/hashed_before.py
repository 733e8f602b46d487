"""Which pulled files are still the ones that were hashed, by what the disk says of them.

`pull` keeps it from one time to the next, and asks whether a copy has to be fetched again. What
proves a result hashes every byte anew: `verify` always, and `down` before it asks for the run's
name; after that, which may be minutes later, it compares what it has just hashed itself.

Not covered: a disk that gives back other bytes of a file that nobody wrote to; `verify` finds them.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from boxcar.shared import paths
from boxcar.shared.disk import atomic, regular_file
from boxcar.shared.files import manifest
from boxcar.shared.files.manifest import Difference, FileRecord

_FORMAT = 1


class HashedBefore:
    """Reads `path` at once; what cannot be read is as if nothing had been hashed. Without a path
    it is forgotten with this object. `from_disk`: files are hashed as the disk gives them back.
    """

    def __init__(self, path: Path | None = None, *, from_disk: bool = False) -> None:
        self._path, self._from_disk = path, from_disk
        self._known = _read(path) if path else {}
        self._seen: dict[str, list[Any]] = {}

    def compare_one(self, folder: Path, file: FileRecord) -> Difference | None:
        """As `manifest.compare_one`, which is asked where it is not known. From any thread."""
        where = paths.inside(folder, file.path)
        before = None if paths.has_symlink(folder, file.path) else regular_file.stamp_of_link(where)
        if before is not None and self._known.get(str(where)) == [before, file.sha256]:
            self._seen[str(where)] = [before, file.sha256]
            return None
        began_ns = time.time_ns()
        difference = manifest.compare_one(folder, file, from_disk=self._from_disk)
        # The stamp is from before the bytes were read: who writes meanwhile makes another one.
        if difference is None and before is not None and regular_file.is_old(before, began_ns):
            self._seen[str(where)] = [before, file.sha256]
        return difference

    def trust(self) -> None:
        """From here on, what this object has compared is not hashed again while it is unchanged."""
        self._known |= self._seen

    def write_hashes(self) -> None:
        """The same for those who read the path later. Raises OSError."""
        known = self._known | self._seen
        if self._path and known != self._known:
            kept = {name: one for name, one in known.items() if Path(name).exists()}
            atomic.make_folder(self._path.parent)
            atomic.write_whole(self._path, json.dumps([_FORMAT, kept]).encode())


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    is_ours = isinstance(found, list) and len(found) == 2 and found[0] == _FORMAT
    return found[1] if is_ours and isinstance(found[1], dict) else {}
