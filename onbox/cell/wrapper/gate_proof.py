"""Whether an interpreter comes to the gate before it reads what it is to run.

One that did not would run a cell before its turn: a program that is called python and starts one
with -I or -S, for example. So only a Python itself is started early, and no script that starts one;
and it is asked before, with a script that is empty. What it says of its packages holds as long as
they are as they were.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from onbox.cell.wrapper import gate

_END_S = 5.0
_PROGRAM = b"\x7fELF"
# Of the environment: by which it is found, is linked, and finds its packages.
_MATTER = (
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME"),
    *("PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE"),
)


class GateProof:
    """Of one interpreter at a time."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] | None = None
        self._asked: subprocess.Popen[bytes] | None = None
        self._found: list[tuple[str, int]] | None = None

    def holds(
        self, python: str, archive: Path, environ: Mapping[str, str], within_s: float = 0.0
    ) -> bool:
        """Whether it has come there in such an environment; where that is not known of just this
        file and its packages, it is asked, and may answer within that time.
        """
        of = _identity(python, archive, environ)
        if of != self._of or self._is_over():
            self.close()
            self._of, self._asked = of, _ask(python, archive, environ) if of else None
        if self._asked and self._found is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._found = _said(self._asked, self._asked.wait(within_s))
        return bool(self._found)

    def _is_over(self) -> bool:
        """Whether it holds no longer what was said; or who was asked was killed."""
        if self._found:
            return not gate.is_unchanged(self._found)
        return self._asked is not None and (self._asked.poll() or 0) < 0

    def close(self) -> None:
        """It is not asked any longer."""
        if self._asked:
            self._asked.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._asked.communicate(timeout=_END_S)
        self._of = self._asked = self._found = None


def _identity(python: str, archive: Path, environ: Mapping[str, str]) -> tuple[object, ...] | None:
    """None where one of both is not there, or it is no program."""
    path = Path(shutil.which(python, path=environ.get("PATH")) or python)
    try:
        with path.open("rb") as file:
            is_program, found = file.read(len(_PROGRAM)) == _PROGRAM, os.fstat(file.fileno())
        own = (str(path), found.st_ino, found.st_mtime_ns, str(archive), archive.stat().st_ino)
    except OSError:
        return None
    return (*own, *map(environ.get, _MATTER)) if is_program else None


def _ask(python: str, archive: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [python, "-u", os.devnull],
            env={**environ, "PYTHONPATH": str(archive), gate.GATE: gate.ASKED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def _said(asked: subprocess.Popen[bytes], ended_with: int) -> list[tuple[str, int]]:
    """Its packages, as they were; none where it did not come, or another one than was started."""
    said = asked.stdout.read() if asked.stdout and ended_with == gate.COMES else b""
    try:
        pid, found = ast.literal_eval(said.decode())
    except (ValueError, SyntaxError):
        return []  # it says more than that at its start
    return [*found] if pid == asked.pid else []
