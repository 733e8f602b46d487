"""The laptop's own look at what was pulled: loaded by the Python that runs Boxcar here."""

from __future__ import annotations

import contextlib
import heapq
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import home
from boxcar.shared.artifacts.file_kinds import BY_TORCH, kind_of
from boxcar.shared.disk import tree_sync
from boxcar.shared.files.plan import BYTES_ONLY, Artifact
from boxcar.shared.files.receipt import HASHED, Finding
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import PLAIN, UNCHECKED, Child, Loaded, Manner

_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# To load less than this takes no longer than another child's import of torch.
SHARE_BYTES = 1 << 30
_MOST_AT_ONCE = 4  # each may hold a checkpoint in memory


def load(folder: Path, files: Sequence[Artifact], manner: Manner = PLAIN) -> Loaded:
    """Load every file of `files`, given relative to `folder`, by several children where they are
    large. `manner.on_finding` is called from any thread.

    Files of `load: trusted` are not: a rented machine wrote them. Nor is what needs torch where
    there is none: its findings say that it was only hashed (both: trusted.py). Raises BoxcarError
    as `load_child.load` does.
    """
    hashed = [] if has_torch() else [file for file in files if _needs_torch(folder, file)]
    left = [file for file in files if file not in hashed]
    loaded = _load(folder, left, manner)
    found = {file.path: _hashed(file) for file in hashed}
    return replace(loaded, findings=loaded.findings | found)


def _load(folder: Path, files: Sequence[Artifact], manner: Manner) -> Loaded:
    """What nothing is known of is loaded once more alone: side by side, memory may not suffice."""

    def by_one_child(share: Sequence[Artifact]) -> Loaded:
        # Not the current folder: a json.py of the user's would win over Python's.
        return load_child.load(Child(sys.executable, Path("/")), folder, share, manner)

    sizes = {file.path: _size_bytes(folder / file.path) for file in files}
    parts = shares(files, sizes, min(_MOST_AT_ONCE, os.cpu_count() or 1))
    if len(parts) < 2:
        return by_one_child(files)
    loaded = _together(tree_sync.run_in_parallel(by_one_child, parts))
    again = [file for file in files if loaded.findings[file.path].kind == UNCHECKED]
    return _together([loaded, by_one_child(again)]) if again else loaded


def shares(files: Sequence[Artifact], sizes: Mapping[str, int], most: int) -> list[list[Artifact]]:
    """`files`, by the bytes of each path in `sizes`, for at most `most` children: about as many
    bytes for each, and no child for less than SHARE_BYTES but the first.
    """
    count = max(1, min(most, sum(sizes.values()) // SHARE_BYTES))
    parts: list[list[Artifact]] = [[] for _ in range(count)]
    loads = [(0, at) for at in range(count)]  # a heap: bytes, and whose
    for file in sorted(files, key=lambda file: -sizes[file.path]):
        size_bytes, at = loads[0]
        parts[at].append(file)
        heapq.heapreplace(loads, (size_bytes + sizes[file.path], at))
    return [part for part in parts if part]


def _together(parts: Sequence[Loaded]) -> Loaded:
    """Of the sandbox what held each of them in, with the first one's numbers."""
    sandboxes = [part.sandbox for part in parts if part.sandbox]
    kinds = [{one.partition("=")[0] for one in sandbox} for sandbox in sandboxes]
    return Loaded(
        {path: finding for part in parts for path, finding in part.findings.items()},
        next((part.loader for part in parts if part.loader), ""),
        tuple(
            one
            for one in (sandboxes or [()])[0]
            if all(one.partition("=")[0] in kind for kind in kinds)
        ),
    )


def _size_bytes(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0  # the child says what is wrong with it


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def how_to_get_torch() -> str:
    """What to type, for torch that is for the CPU."""
    return home.install_line("torch", "numpy", index=_CPU_INDEX)


def _needs_torch(folder: Path, file: Artifact) -> bool:
    return file.load != BYTES_ONLY and kind_of(folder, file.path) in BY_TORCH


def _hashed(file: Artifact) -> Finding:
    return Finding(file.path, UNCHECKED, facts={HASHED: True}, load=file.load)
