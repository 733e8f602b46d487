"""Files that are either whole or not there: checkpoints and metrics.

A reader (a mirror that copies latest.pth while the cell runs, the next start of the same command)
sees the file before or the file after, never half of one, also when the power goes. Not covered:
two processes that write the same file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a neighbour of path, and give it the name once its bytes are on disk."""
    # One fixed neighbour, not a random one: a killed cell leaves at most one behind, and the next
    # write reuses it.
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save(path: Path, state: dict[str, Any]) -> None:
    """Write containers, numbers and tensors only: torch.load(weights_only=True) must read them."""
    write_whole(path, lambda file: torch.save(state, file))


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write one JSON document; NaN is refused, because most readers of JSON refuse it too."""
    text = json.dumps(values, indent=2, allow_nan=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def load(path: Path) -> dict[str, Any] | None:
    """The state, on the CPU; None where there is none, or one that cannot be read (said)."""
    if not path.exists():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    # A cut file fails inside zip, pickle or torch, with a different exception for each length.
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        print(
            f"{path} cannot be read ({reason}): starting from scratch", file=sys.stderr, flush=True
        )
        return None
