"""A folder of many small files, copied with proof, beside rsync and beside the least that gives the
same proof: write all, one syncfs, read all again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.copies import forget
from bench.row import Row, of_samples
from bench.taking_turns import seconds
from boxcar.shared.disk.checked_tree import ToCopy, copy_all

SIZE_BYTES, ROUNDS = 4096, 5
# How many files.
SIZES = (2000,)
LONG_SIZES = (2000, 5000)
_ONE_SYNC, _RSYNC = "one syncfs, by hand", "rsync --fsync, then rsync -c"
_RCLONE = "rclone copy, sync, rclone check"
_AIMS = {_ONE_SYNC: 1.3, _RSYNC: 0.85}


def measure(folder: Path) -> list[Row]:
    return [row for count in SIZES for row in _of_count(folder / str(count), count)]


def _of_count(folder: Path, count: int) -> list[Row]:
    source, target = folder / "source", folder / "target"
    names = [f"part_{number % 20}/{number}.json" for number in range(count)]
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(os.urandom(SIZE_BYTES))

    def cold() -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        os.sync()  # as in copies

    def ours() -> None:
        copy_all(target, [ToCopy(source / name, target / name, name) for name in names])

    ways: dict[str, Callable[[], object]] = {_ONE_SYNC: lambda: _by_hand(source, target, names)}
    if shutil.which("rsync"):
        ways[_RSYNC] = lambda: _rsync_twice(source, target)
    if shutil.which("rclone"):
        ways[_RCLONE] = lambda: _rclone_twice(source, target, names)
    took = seconds({"ours": ours, **ways}, ROUNDS, cold)
    what = f"{count} files of {SIZE_BYTES} bytes"
    return [of_samples(what, took, name, _AIMS.get(name)) for name in ways]


def _by_hand(source: Path, target: Path, names: list[str]) -> None:
    sums = {}
    for name in names:
        data = (source / name).read_bytes()
        sums[name] = hashlib.sha256(data).digest()
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    fd = os.open(target, os.O_RDONLY)
    assert ctypes.CDLL(None).syncfs(fd) == 0
    os.close(fd)
    for name in names:
        forget(target / name)
        assert hashlib.sha256((target / name).read_bytes()).digest() == sums[name]


def _rsync_twice(source: Path, target: Path) -> None:
    subprocess.run(["rsync", "-a", "--fsync", f"{source}/", target], check=True)
    subprocess.run(["rsync", "-a", "-c", f"{source}/", target], check=True)


def _rclone_twice(source: Path, target: Path, names: list[str]) -> None:
    quiet = subprocess.DEVNULL
    subprocess.run(["rclone", "copy", source, target], check=True, stderr=quiet)
    os.sync()
    for name in names:
        forget(target / name)
    subprocess.run(["rclone", "check", source, target], check=True, stderr=quiet)
