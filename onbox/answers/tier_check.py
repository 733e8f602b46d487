"""Whether the durable tier is one place for all boxes, tried with real files.

Each box writes a file and reads those of all others; then all claim one name at once, the way that
cells are claimed, and exactly one may win. The laptop calls the steps and draws the conclusion.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import reason_of
from boxcar.shared.sentence import _
from boxcar.shared.wire.box_asks import TierProbe, TierProbed
from boxcar.shared.wire.question import RunOnBox

# More than a page and a network block, so that it cannot come out of a directory entry.
_SIZE_BYTES = 64 * 1024
_CLAIM = "claim"


def answer(question: TierProbe, run: RunOnBox) -> TierProbed:
    """One step of it. What cannot be done is a `problem`, in words."""
    steps = {"write": _write, "read": _read, "claim": _claim, "owner": _owner, "clean": _clean}
    folder = run.tier.root / f".probe-{question.token}"
    try:
        return steps[question.step](folder, question)
    except OSError as error:
        return TierProbed(
            problem=_("{head}: {text}", head=error.filename or folder, text=reason_of(error))
        )


def _write(folder: Path, question: TierProbe) -> TierProbed:
    data = _content(folder.name, question.name)
    atomic.make_folder(folder)
    atomic.write_whole(_file(folder, question.name), data)
    return TierProbed(sha256=digest.of_bytes(data))


def _read(folder: Path, question: TierProbe) -> TierProbed:
    # NFS remembers for a minute that a folder was not there. Making it asks the server.
    atomic.make_folder(folder)
    return TierProbed(files={name: _sha256(_file(folder, name)) for name in question.names})


def _claim(folder: Path, question: TierProbe) -> TierProbed:
    return TierProbed(has_won=atomic.create_once(folder / _CLAIM, question.name.encode()))


def _owner(folder: Path, question: TierProbe) -> TierProbed:
    with contextlib.suppress(FileNotFoundError):
        return TierProbed(owner=(folder / _CLAIM).read_text(errors="replace"))
    return TierProbed()


def _clean(folder: Path, question: TierProbe) -> TierProbed:
    # All boxes clean at once: what one removes is gone for the others.
    shutil.rmtree(folder, ignore_errors=True)
    # The run's own folder was perhaps made by us alone; where it holds anything, this fails.
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
    return TierProbed()


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
