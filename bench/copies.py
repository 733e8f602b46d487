"""A checked copy, beside what people type for the same proof."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.row import Row
from boxcar.shared.disk.checked_copy import checked_copy

SIZE_BYTES = 1024 * 1024 * 1024
_BLOCK_BYTES = 16 * 1024 * 1024


def measure(folder: Path) -> list[Row]:
    source = folder / "checkpoint.pth"
    with source.open("wb") as file:
        for _ in range(SIZE_BYTES // _BLOCK_BYTES):
            file.write(os.urandom(_BLOCK_BYTES))
        os.fsync(file.fileno())
    ours_s = _seconds(source, lambda to: checked_copy(source, to, "checkpoint.pth"))
    return [
        Row("copy, hash, fsync, read back, 1 GiB", ours_s, "s", _seconds(source, by_hand), name)
        for by_hand, name in (
            (lambda to: _cp_and_sums(source, to), "cp, sync, sha256sum twice"),
            (lambda to: _rsync_twice(source, to), "rsync --fsync, then rsync -c"),
        )
        if name.startswith("cp") or shutil.which("rsync")
    ]


def _seconds(source: Path, copy: Callable[[Path], object]) -> float:
    """From a cold source; the median would cost minutes, so it is the better of two."""
    found = []
    for _ in range(2):
        _forget(source)
        target = source.with_name("copy")
        began = time.monotonic()
        copy(target)
        found.append(time.monotonic() - began)
        target.unlink()
    return min(found)


def _forget(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _cp_and_sums(source: Path, target: Path) -> None:
    subprocess.run(["cp", source, target], check=True)
    subprocess.run(["sync", target], check=True)
    _forget(target)
    sums = [
        subprocess.run(["sha256sum", path], check=True, capture_output=True).stdout.split()[0]
        for path in (source, target)
    ]
    assert sums[0] == sums[1]


def _rsync_twice(source: Path, target: Path) -> None:
    subprocess.run(["rsync", "-a", "--fsync", source, target], check=True)
    _forget(target)
    subprocess.run(["rsync", "-a", "-c", source, target], check=True)
