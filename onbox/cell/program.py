"""The program of an attempt: what is ours of the agent's file, unpacked on the box's own disk.

From the file itself each attempt would inflate and compile it anew. The sources are proven; their
bytecode is Python's own cache, which the first attempt makes: what is compiled of one text differs
from process to process.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from boxcar.shared.disk import digest
from boxcar.shared.files.manifest import FileRecord

FOLDER = "program"
_OURS = ("boxcar/", "onbox/")


class Program:
    """Its files, from the agent's file of a release."""

    def __init__(self, archive: Path) -> None:
        """Raises OSError, BadZipFile."""
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if name.startswith(_OURS)]
            self._data = {name: opened.read(name) for name in names if not name.endswith("/")}

    def records(self) -> tuple[FileRecord, ...]:
        return tuple(
            FileRecord(f"{FOLDER}/{name}", len(data), digest.of_bytes(data))
            for name, data in self._data.items()
        )

    def fetch(self, file: FileRecord, target: Path) -> None:
        target.write_bytes(self._data[file.path.removeprefix(f"{FOLDER}/")])
        # Of no other time than this is the bytecode: what was made of another text is made anew.
        os.utime(target, (0, 0))


def without(changed: Iterable[str]) -> tuple[str, ...]:
    """Of files of a wrapper those that are not of its program, which is Boxcar's own: it is put
    back, and no cell is failed for it.
    """
    return tuple(path for path in changed if not path.startswith(f"{FOLDER}/"))
