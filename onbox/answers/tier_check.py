"""Whether the durable tier is one place for all boxes, tried with real files.

Each box writes a file and reads those of all others; then all claim one name at once, the way that
cells are claimed, and exactly one may win. The laptop calls the steps and draws the conclusion.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

from boxcar.shared import names
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import InputError
from onbox.answers.request import Request

# More than a page and a network block, so that it cannot come out of a directory entry.
_SIZE_BYTES = 64 * 1024
_TOKEN = re.compile(r"[0-9a-f]{16,64}")
_CLAIM = "claim"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """One step: write, read, claim or clean. Every answer may be `problem` instead, in words.

    write  {name}    -> {name: sha256} of what this box wrote
    read   {names}   -> {files: {name: sha256 or null where this box does not see it}}
    claim  {name}    -> {has_won}
    owner            -> {owner}: the name in the claim, as this box sees it
    clean            -> {}
    """
    steps = {"write": _write, "read": _read, "claim": _claim, "owner": _owner, "clean": _clean}
    asked = Request(request)
    step = steps.get(asked.text("step"))
    if step is None:
        raise InputError(f"step: expected one of {', '.join(steps)}, found {request['step']!r}")
    token = _checked(_TOKEN, "token", asked.text("token"))
    folder = asked.tier.root / f".probe-{token}"
    try:
        return step(folder, asked)
    except OSError as error:
        return {"problem": f"{error.filename or folder}: {error.strerror}"}


def _checked(pattern: re.Pattern[str], field: str, text: object) -> str:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise InputError(f"{field}: expected {pattern.pattern}, found {text!r}")
    return text


def _write(folder: Path, asked: Request) -> dict[str, Any]:
    name = _checked(names.PLACE, "name", asked.text("name"))
    data = _content(folder.name, name)
    atomic.make_folder(folder)
    atomic.write_whole(_file(folder, name), data)
    return {"sha256": digest.of_bytes(data)}


def _read(folder: Path, asked: Request) -> dict[str, Any]:
    wanted = [_checked(names.PLACE, "names", name) for name in asked.value("names", list)]
    # NFS remembers for a minute that a folder was not there. Making it asks the server.
    atomic.make_folder(folder)
    return {"files": {name: _sha256(_file(folder, name)) for name in wanted}}


def _claim(folder: Path, asked: Request) -> dict[str, Any]:
    name = _checked(names.PLACE, "name", asked.text("name"))
    return {"has_won": atomic.create_once(folder / _CLAIM, name.encode())}


def _owner(folder: Path, asked: Request) -> dict[str, Any]:
    try:
        return {"owner": (folder / _CLAIM).read_text(errors="replace")}
    except FileNotFoundError:
        return {"owner": None}


def _clean(folder: Path, asked: Request) -> dict[str, Any]:
    # All boxes clean at once: what one removes is gone for the others.
    shutil.rmtree(folder, ignore_errors=True)
    # The run's own folder was perhaps made by us alone; where it holds anything, this fails.
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
    return {}


def _content(token: str, name: str) -> bytes:
    """Told apart by box and probe, so that an old file is never taken for this one."""
    line = f"{token} {name}\n".encode()
    return (line * (_SIZE_BYTES // len(line) + 1))[:_SIZE_BYTES]


def _sha256(path: Path) -> str | None:
    try:
        return digest.of_file(path, from_disk=True)
    except FileNotFoundError:
        return None


def _file(folder: Path, name: str) -> Path:
    return folder / f"from-{name}"
