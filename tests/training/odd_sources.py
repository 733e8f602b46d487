"""Sources that misbehave on purpose: fsspec file systems over a real folder, for test_*.py.

The settings lie in ODD.json beside the data, so that they reach other processes too, and ODD.log
gets a line for each range that is read.
"""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem


class OddFileSystem(LocalFileSystem):
    """ODD.json may say: fail (the first n reads), fail_after (n reads), hang_after (n reads),
    short (the first n reads give a byte less), slow_s (of each read), error (of a failing read),
    look_error (of a look)."""

    protocol = "odd"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(path).removeprefix("odd://").partition("?")[0]

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        settings = _settings(path)
        if "look_error" in settings:
            raise _ERRORS[settings["look_error"]](f"odd://user:hunter2@host/{path}?sig=hunter2")
        return super().info(self._strip_protocol(path), **kwargs)

    def cat_file(self, path: str, start: int = 0, end: int = 0, **kwargs: Any) -> bytes:
        path, settings = self._strip_protocol(path), _settings(path)
        before = _log(path, f"{Path(path).name} {start} {end}")
        if "hang_after" in settings and before >= settings["hang_after"]:
            time.sleep(600)
        time.sleep(settings.get("slow_s", 0))
        if before < settings.get("fail", 0) or before >= settings.get("fail_after", 1_000_000):
            error = _ERRORS[settings.get("error", "OSError")]
            raise error(f"cut: odd://user:hunter2@host{path}?sig=hunter2")
        with Path(path).open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
        return data[:-1] if before < settings.get("short", 0) else data


_ERRORS = {
    error.__name__: error for error in (OSError, PermissionError, TimeoutError, RuntimeError)
}


def register() -> None:
    fsspec.register_implementation("odd", OddFileSystem, clobber=True)


def behave(folder: Path, **settings: Any) -> None:
    """From now on; the count of reads begins anew."""
    (folder / "ODD.json").write_text(json.dumps(settings))
    (folder / "ODD.log").unlink(missing_ok=True)


def reads(folder: Path) -> list[str]:
    """`name start end` of each range that was asked for since."""
    log = folder / "ODD.log"
    return log.read_text().splitlines() if log.exists() else []


def _settings(path: str) -> dict[str, Any]:
    found = Path(OddFileSystem._strip_protocol(path)).parent / "ODD.json"
    return json.loads(found.read_text()) if found.exists() else {}


def _log(path: str, line: str) -> int:
    """How many lines there were before; no two reads get the same number."""
    log = Path(path).parent / "ODD.log"
    with log.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{line}\n".encode())
        file.flush()
        return log.read_text().count("\n") - 1
