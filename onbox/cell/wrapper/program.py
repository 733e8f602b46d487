"""What is staged of the program that runs an attempt: modules of the agent's file.

From the file itself each start would read its list, inflate and compile: two thirds of the time
that a start takes. What is in neither list is still found there, see begin.py.

Their sources are proven. Their bytecode is Python's own cache, which the first attempt makes: what
is compiled of one text differs from process to process.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from boxcar.shared.disk import digest
from boxcar.shared.files.manifest import FileRecord
from onbox.cell.wrapper.waiting import TORCHRUN

FOLDER = "program"
BEGIN = "begin.py"
# Scripts: beside the modules.
_SCRIPTS = {BEGIN: "onbox.cell.wrapper.begin", TORCHRUN: "onbox.cell.wrapper.torchrun"}
# What stands between two cells: tests/onbox/cell/wrapper/test_begin.py holds that it is no more.
FIRST: tuple[str, ...] = (
    "boxcar",
    "boxcar.shared",
    "boxcar.shared.disk",
    "boxcar.shared.disk.atomic",
    "boxcar.shared.disk.lock",
    "boxcar.shared.exit_codes",
    "boxcar.shared.cell",
    "boxcar.shared.cell.grace",
    "boxcar.shared.timestamp",
    "onbox",
    "onbox.cell",
    "onbox.cell.attempt",
    "onbox.cell.environment",
    "onbox.cell.wrapper",
    "onbox.cell.wrapper.documents",
    "onbox.cell.wrapper.launcher",
    "onbox.cell.wrapper.places",
    "onbox.cell.wrapper.stop",
    "onbox.cell.wrapper.words",
    "onbox.machine",
    "onbox.machine.light",
    "onbox.machine.cgroup",
    "onbox.machine.credentials_path",
    "onbox.machine.oom_kills",
    "onbox.machine.process",
)
# What a cell that runs for a while, is tried again, or has credentials brings as well.
LATER: tuple[str, ...] = (
    "boxcar.shared.cadence",
    "boxcar.shared.catalogue",
    "boxcar.shared.catalogue.sentence",
    "boxcar.shared.cell.cell_name",
    "boxcar.shared.cell.duration",
    "boxcar.shared.cell.own_words",
    "boxcar.shared.cell.spelling",
    "boxcar.shared.disk.digest",
    "boxcar.shared.disk.regular_file",
    "boxcar.shared.errors",
    "boxcar.shared.files",
    "boxcar.shared.files.accepted",
    "boxcar.shared.files.attempt",
    "boxcar.shared.files.check",
    "boxcar.shared.files.codec",
    "boxcar.shared.files.manifest",
    "boxcar.shared.files.plan",
    "boxcar.shared.files.receipt",
    "boxcar.shared.known_secrets",
    "boxcar.shared.message",
    "boxcar.shared.names",
    "boxcar.shared.paths",
    "boxcar.shared.record",
    "boxcar.shared.to_load",
    "onbox.cell.processes",
    "onbox.cell.published",
    "onbox.cell.world",
    "onbox.cell.wrapper.failed",
    "onbox.cell.wrapper.overtaken",
    "onbox.cell.wrapper.prepared",
    "onbox.cell.wrapper.waiting",
    "onbox.cell.wrapper.watch",
    "onbox.machine.secret_env",
    "onbox.machine.terminal",
)
_MODULES = (*FIRST, *LATER)


class Program:
    """Its files, from the agent's file of a release."""

    def __init__(self, archive: Path) -> None:
        """Of a release without that file there is none, and none of another Boxcar's that has other
        modules. Raises OSError, BadZipFile.
        """
        self._data: dict[str, bytes] = {}
        if not archive.is_file():
            return
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
            if not names.issuperset(_paths(names, (*_MODULES, *_SCRIPTS.values()))):
                return
            sources = {name: opened.read(name) for name in _paths(names, _MODULES)}
            scripts = {name: opened.read(_path(of, names)) for name, of in _SCRIPTS.items()}
        self._data |= scripts | sources

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


def _paths(names: set[str], modules: Iterable[str]) -> list[str]:
    return [_path(module, names) for module in modules]


def _path(module: str, names: set[str]) -> str:
    path = module.replace(".", "/")
    package = f"{path}/__init__.py"
    return package if package in names else f"{path}.py"
