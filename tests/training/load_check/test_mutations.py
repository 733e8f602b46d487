"""One bit and the structure of each kind changed: the manifest says so, and the look comes back."""

from __future__ import annotations

import argparse
import importlib.util
import json
import pickle
import random
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from left_files import onnx, safetensors, sharded

from boxcar.shared.disk import digest
from boxcar.shared.files import manifest
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import BYTES_ONLY, SAFE, Artifact
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import UNCHECKED, Child

numpy = pytest.importorskip("numpy")
HAS_JOBLIB = importlib.util.find_spec("joblib") is not None
STATE = {"model": {"w": torch.arange(64.0)}, "args": argparse.Namespace(lr=0.1), "epoch": 3}
KINDS: dict[str, Callable[[Path], object]] = {
    "best.pth": lambda path: torch.save(STATE, path),
    "old.pt": lambda path: torch.save(STATE, path, _use_new_zipfile_serialization=False),
    "plain.pkl": lambda path: path.write_bytes(pickle.dumps({"a": numpy.arange(40.0), "b": [1]})),
    "model.safetensors": safetensors,
    "model.onnx": onnx,
    "arrays.npz": lambda path: numpy.savez(path, a=numpy.arange(64.0)),
    "metrics.json": lambda path: path.write_text(json.dumps({"dice": 0.5, "n": list(range(40))})),
    "index/.metadata": sharded,
    "log.csv": lambda path: path.write_text("a,b\n" + "1.25,2.5\n" * 40),
}


def dumped(path: Path, **options: Any) -> None:
    import joblib

    joblib.dump({"a": numpy.arange(40.0), "b": [1]}, path, **options)


if HAS_JOBLIB:
    KINDS |= {
        "forest.joblib": dumped,
        "small.joblib": partial(dumped, compress=3),
        "small.pkl.gz": dumped,
    }


def one_bit(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data))]


def removed(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data) - 1), chance.randrange(1, 1 + len(data) // 4)
    return data[:at] + data[at + length :]


def doubled(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data) - 1), chance.randrange(1, 1 + len(data) // 4)
    return data[: at + length] + data[at:]


def swapped(data: bytes, chance: random.Random) -> bytes:
    third = len(data) // 3
    return data[third : 2 * third] + data[:third] + data[2 * third :]


CHANGES = (one_bit, cut, removed, doubled, swapped)


def mutate(folder: Path, name: str, times: int, seed: int) -> dict[str, bytes]:
    """Files that differ from the whole one, by their path below `folder`."""
    whole = folder / "whole" / name
    whole.parent.mkdir(parents=True, exist_ok=True)
    KINDS[name](whole)
    data, chance = whole.read_bytes(), random.Random(seed)
    found = {}
    for change in CHANGES:
        for at in range(times):
            changed = change(data, chance)
            if changed and changed != data:
                path = folder / f"{change.__name__}-{at}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if whole.parent.name != "whole":  # the rest of a folder that is one thing
                    shutil.copytree(whole.parent, path.parent, dirs_exist_ok=True)
                path.write_bytes(changed)
                found[path.relative_to(folder).as_posix()] = changed
    return found


def check(folder: Path, times: int, seed: int) -> None:
    """Every change of every kind, in one child."""
    found = {path for name in KINDS for path in mutate(folder, name, times, seed)}
    for path in found:
        data = (folder / "whole" / path.partition("/")[2]).read_bytes()
        record = FileRecord(path, len(data), digest.of_bytes(data))
        assert manifest.compare_one(folder, record), f"{path} passed for the whole one"
    ways = [Artifact(path, load=SAFE) for path in sorted(found)]
    whole = [Artifact(f"whole/{name}") for name in KINDS]
    child = Child(sys.executable, Path("/"))
    looked = load_child.load(child, folder, [*whole, *ways]).findings
    assert all(looked[file.path].is_good for file in whole)
    assert set(looked) == found | {file.path for file in whole}
    assert not [path for path, one in looked.items() if one.kind == UNCHECKED and "cut" in path]
    cuts = {path for path in found if path.startswith("cut-") and not path.endswith(".csv")}
    assert not [path for path in cuts if looked[path].is_good], f"cut, and good; seed {seed}"
    as_bytes = [Artifact(path, load=BYTES_ONLY) for path in sorted(found)[:10]]
    kinds = {one.kind for one in load_child.load(child, folder, as_bytes).findings.values()}
    assert kinds == {"bytes"}


def test_each_change_is_seen_by_the_manifest_and_no_look_is_lost(tmp_path: Path) -> None:
    check(tmp_path, 3, seed=20261122)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(5))
def test_so_it_is_with_many_changes(tmp_path: Path, seed: int) -> None:
    check(tmp_path, 60, seed)
