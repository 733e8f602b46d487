"""The check of a checkpoint beside torch.load: what it costs, and which damages it catches."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.row import Row, no_value, of_samples
from bench.taking_turns import seconds
from boxcar.shared.files.plan import Artifact
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import Child

SIZE_MIB, ROUNDS = int(os.environ.get("BENCH_CHECK_MIB", "512")), 3
_SAVE = "import sys, torch; torch.save({'w': torch.rand(int(sys.argv[2]) * 2**18)}, sys.argv[1])"
_LOAD = "import sys, torch; torch.load(sys.argv[1], weights_only=True)"
_LOAD_ALL = """
import sys, torch
bad = 0
for name in sys.argv[1:]:
    try:
        torch.load(name, weights_only=True)
    except Exception:
        bad += 1
print(bad)
"""
NAME = "model.pth"
_PEER = "torch.load, a new process"


def measure(folder: Path) -> list[Row]:
    if not importlib.util.find_spec("torch"):
        return [no_value("check of a checkpoint", "torch is not installed")]
    path = folder / NAME
    subprocess.run([sys.executable, "-c", _SAVE, path, str(SIZE_MIB)], check=True)
    load = [sys.executable, "-c", _LOAD, str(path)]
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: _check(folder),
        _PEER: lambda: subprocess.run(load, check=True),
    }
    took = seconds(ways, ROUNDS)
    caught, theirs = _caught(folder / "damaged")
    what = f"check of a checkpoint of {SIZE_MIB} MiB"
    return [
        of_samples(what, took, _PEER, 1.0),
        Row(f"of {len(DAMAGES)} damages caught", caught, "of them", theirs, "torch.load"),
    ]


def _check(folder: Path, names: Sequence[str] = (NAME,)) -> int:
    """How many of them are bad."""
    files = [Artifact(name) for name in names]
    found = load_child.load(Child(sys.executable, Path.cwd()), folder, files)
    return sum(not finding.is_good for finding in found.findings.values())


def _caught(folder: Path) -> tuple[int, int]:
    """How many of the damages we say, and how many torch.load."""
    folder.mkdir()
    sound = folder / "sound.pth"
    subprocess.run([sys.executable, "-c", _SAVE, sound, "8"], check=True)
    names = [f"damage-{number}.pth" for number in range(len(DAMAGES))]
    for name, damage in zip(names, DAMAGES, strict=True):
        shutil.copyfile(sound, folder / name)
        damage(folder / name)
    command = [sys.executable, "-c", _LOAD_ALL, *(str(folder / name) for name in names)]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True)
    return _check(folder, names), int(theirs.stdout)


def _flip(path: Path) -> None:
    _write(path, path.stat().st_size // 2, None)


def _flip_late(path: Path) -> None:
    _write(path, path.stat().st_size * 9 // 10, None)


def _zeros(path: Path) -> None:
    _write(path, path.stat().st_size // 3, bytes(4096))


def _tail(path: Path) -> None:
    _write(path, path.stat().st_size - 65536, bytes(65536))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1000)


DAMAGES = (_flip, _flip_late, _zeros, _tail, _cut)


def _write(path: Path, at: int, data: bytes | None) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        new = data or bytes([file.read(1)[0] ^ 1])
        file.seek(at)
        file.write(new)
