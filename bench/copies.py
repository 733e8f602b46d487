"""A checked copy of a file by its size, beside what people type for the same proof, and the floor:
to read, write, fsync and read again, with nothing hashed. `--long` takes the 4 GiB that the aim is
set for, and for a large file the peers that take minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.row import Row, no_value, of_samples
from bench.taking_turns import seconds
from boxcar.shared.disk import digest
from boxcar.shared.disk.checked_copy import checked_copy

SIZES = (16, 64, 256, 1024)  # MiB
LONG_SIZES = (4096,)
_LARGE_MIB = 1024
ROUNDS = 3
WHAT = "copy, hash, fsync, read back"
_BLOCK_BYTES = 16 * 1024 * 1024
_FLOOR, _SUMS = "read, write, fsync, read: no hash", "cp, sync, sha256sum twice"
_RSYNC, _RCLONE = "rsync --fsync, then rsync -c", "rclone copy, sync, rclone check"
_AIMS = {_FLOOR: 1.15, _RSYNC: 0.85}


def measure(folder: Path) -> list[Row]:
    missing = [name for name in ("rsync", "rclone") if not shutil.which(name)]
    return [
        *(row for size_mib in SIZES for row in _of_size(folder, size_mib)),
        *(no_value(f"{WHAT}, {name}", "is not installed") for name in missing),
    ]


def _of_size(folder: Path, size_mib: int) -> list[Row]:
    source, target = folder / "from" / "checkpoint.pth", folder / "to" / "checkpoint.pth"
    for path in (source, target):
        path.parent.mkdir(exist_ok=True)
    with source.open("wb") as file:
        for _ in range(size_mib * 2**20 // _BLOCK_BYTES):
            file.write(os.urandom(_BLOCK_BYTES))
        os.fsync(file.fileno())

    def cold() -> None:
        target.unlink(missing_ok=True)
        os.sync()  # else who comes next waits for what the one before has left to the disk
        forget(source)

    is_quick = size_mib >= _LARGE_MIB and size_mib not in LONG_SIZES
    ways = _ways(source, target, is_quick=is_quick)
    took = seconds({"ours": lambda: checked_copy(source, target, "c"), **ways}, ROUNDS, cold)
    return [of_samples(f"{WHAT}, {size_mib} MiB", took, name, _AIMS.get(name)) for name in ways]


def _ways(source: Path, target: Path, *, is_quick: bool) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {_FLOOR: lambda: _floor(source, target)}
    if shutil.which("rsync"):
        found[_RSYNC] = lambda: _rsync_twice(source, target)
    if not is_quick:
        found[_SUMS] = lambda: _cp_and_sums(source, target)
        if shutil.which("rclone"):
            found[_RCLONE] = lambda: _rclone_twice(source, target)
    return found


def forget(path: Path) -> None:
    """From a cold source."""
    with path.open("rb") as file:
        digest.forget_cached_pages(file.fileno())


def _floor(source: Path, target: Path) -> None:
    block = bytearray(4 * 1024 * 1024)
    view = memoryview(block)
    with source.open("rb", 0) as reader, target.open("wb", 0) as writer:
        while count := reader.readinto(block):
            writer.write(view[:count])
        os.fsync(writer.fileno())
    forget(target)
    with target.open("rb", 0) as reader:
        while reader.readinto(block):
            pass


def _cp_and_sums(source: Path, target: Path) -> None:
    subprocess.run(["cp", source, target], check=True)
    subprocess.run(["sync", target], check=True)
    forget(target)
    sums = [
        subprocess.run(["sha256sum", path], check=True, capture_output=True).stdout.split()[0]
        for path in (source, target)
    ]
    assert sums[0] == sums[1]


def _rsync_twice(source: Path, target: Path) -> None:
    subprocess.run(["rsync", "-a", "--fsync", source, target], check=True)
    forget(target)
    subprocess.run(["rsync", "-a", "-c", source, target], check=True)


def _rclone_twice(source: Path, target: Path) -> None:
    subprocess.run(["rclone", "copyto", source, target], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["sync", target], check=True)
    forget(target)
    folders = (source.parent, target.parent)
    subprocess.run(["rclone", "check", *folders], check=True, stderr=subprocess.DEVNULL)
