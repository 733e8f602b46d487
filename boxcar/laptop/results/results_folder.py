"""The results folder of a run on the laptop: one verb at a time, and nothing in it is ever deleted.

pull, verify and down change what lies there, so only one of them works at a time. What gives way to
something newer is moved to `replaced/`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import home
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import DamagedError, TemporaryError
from boxcar.shared.files import codec, receipt
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass

WAIT_S = 20.0
SECOND = "second.json"


@contextlib.contextmanager
def hold(run: OpenRun) -> Iterator[int]:
    """Be the only verb that changes the results; the descriptor that holds the lock.

    Creates the folder, and puts aside what belongs to a run of this name that was torn down before
    this one was launched. Raises TemporaryError where another keeps the lock, and InputError where
    the folder cannot be written to.
    """
    with home.results_to(run.results.root):
        atomic.make_folder(run.results.root)
        fd = _take(run.results.root / ".lock")
    try:
        _begin_again(run)
        yield fd
    finally:
        os.close(fd)


def set_aside(results: ResultPaths, path: Path) -> Path:
    """Move a file or folder out of the way, durably; where it lies now."""
    folder = results.root / "replaced"
    atomic.make_folder(folder)
    # Without colons, which some file systems refuse.
    aside = folder / f"{path.name}-{timestamp.utc_now().replace(':', '')}"
    path.rename(aside)
    atomic.sync_folder(folder)
    atomic.sync_folder(path.parent)
    return aside


def is_torn_down(results: ResultPaths) -> bool:
    """Whether a teardown came to its end. One that cannot be read did not: `down` says why."""
    try:
        teardown = receipt.read_teardown(results.teardown)
    except (OSError, DamagedError):
        return False
    return teardown is not None and teardown.finished_at is not None


def is_over(run: OpenRun) -> bool:
    """Whether it was torn down; where the tier is there again, it was launched anew since."""
    return not run.tier.root.exists() and is_torn_down(run.results)


@dataclass(frozen=True)
class SecondHomeRecord:
    """Results that came from the second home: of each cell its manifest's digest. No tier has that
    manifest, so what is here is compared with what is written down here.
    """

    FORMAT: ClassVar[str] = "second"
    VERSION: ClassVar[int] = 1

    cells: dict[str, str]


def from_second_home(results: ResultPaths) -> dict[str, str]:
    """By cell. Raises DamagedError, OSError."""
    path = results.root / SECOND
    if not path.exists():
        return {}
    return codec.from_document(SecondHomeRecord, path.read_bytes(), str(path)).cells


def keep_from_second_home(results: ResultPaths, cell: str, sha256: str) -> None:
    record = SecondHomeRecord(from_second_home(results) | {cell: sha256})
    atomic.write_whole(results.root / SECOND, codec.to_document(record))


def bytes_below(folder: Path) -> int:
    """What the files in `folder` take, without following links; 0 for one that is not there."""
    total_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # rsync renames meanwhile
                total_bytes += (Path(parent) / name).lstat().st_size
    return total_bytes


def _take(path: Path) -> int:
    until = time.monotonic() + WAIT_S
    while (fd := lock.try_hold(path)) is None:
        if time.monotonic() > until:
            raise TemporaryError(
                f"{path}: another pull, verify or down of this run is at work, or an rsync that a "
                "killed pull left behind (it ends by itself). Try again when it has ended."
            )
        time.sleep(0.1)
    return fd


def _begin_again(run: OpenRun) -> None:
    """A run that was torn down to the end and stands on the tier was launched anew since.

    What was abandoned or approved in its first life says nothing about the second.
    """
    results = run.results
    teardown = receipt.read_teardown(results.teardown)
    if teardown is None or teardown.finished_at is None or not run.tier.root.exists():
        return
    # The teardown goes last: it is what brings us here again after a crash in between.
    for path in (results.receipt, results.teardown):
        if path.exists():
            set_aside(results, path)
