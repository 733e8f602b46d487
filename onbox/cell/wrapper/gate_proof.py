"""Whether an interpreter comes to the gate before it reads what it is to run.

One that hears neither of PYTHONPATH nor of `sitecustomize` would run a cell before its turn: a
program that is called python and starts one with -I or -S, for example. So it is asked first, with
a script that is empty.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from onbox.cell.wrapper import gate

_END_S = 5.0


class GateProof:
    """Of one interpreter at a time. Nobody waits for its answer."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] | None = None
        self._asked: subprocess.Popen[bytes] | None = None

    def holds(self, python: str, archive: Path, environ: Mapping[str, str]) -> bool:
        """Whether it has come there; where that is not known of just this file, it is asked."""
        of = _identity(python, archive)
        if of != self._of:
            self.close()
            self._of, self._asked = of, _ask(python, archive, environ) if of else None
        return self._asked is not None and self._asked.poll() == gate.COMES

    def close(self) -> None:
        """It is not asked any longer."""
        if self._asked and self._asked.poll() is None:
            self._asked.kill()
            self._asked.wait(_END_S)
        self._of = self._asked = None


def _identity(python: str, archive: Path) -> tuple[object, ...] | None:
    """None where one of both is not there."""
    try:
        found = Path(shutil.which(python) or python).stat()
        return python, str(archive), archive.stat().st_ino, found.st_ino, found.st_mtime_ns
    except OSError:
        return None


def _ask(python: str, archive: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [python, "-u", os.devnull],
            env={**environ, "PYTHONPATH": str(archive), gate.GATE: gate.ASKED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
