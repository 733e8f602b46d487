"""`$BOXCAR_OUT/training.json`: what can change a cell's numbers, written down by what decides it.

    run_manifest.record(effective_batch=256, precision="bf16")

The facts at the top are the newest; `starts` has one entry for each process that trained the cell,
with the facts of that start: a cell that was resumed on another torch, or on half of the GPUs, has
other numbers, and this is where it shows. Rank 0 writes; people and reports read. Without
BOXCAR_OUT the file lies in the working folder.

Not covered: two processes that both say they are rank 0 of one cell.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.files.progress import TRAINING_FILE, Start, Training
from boxcar.training.reporting.say import say_once

_TAKEN = ("format", "starts", "at")


def record(**facts: Any) -> None:
    """Add facts to the manifest, or replace them; ranks other than 0 do nothing.

    A fact is JSON (numbers, text, lists, objects); anything else is written as its text. A file
    that cannot be read is said, kept aside as `training.json.damaged-1`, and begun anew. A full
    disk is said once: training must not die of what it writes about itself.
    """
    if taken := [name for name in facts if name in _TAKEN]:
        raise InputError(
            f"run_manifest.record: {', '.join(taken)} is reserved: choose another name"
        )
    if os.environ.get("RANK", "0") != "0":
        return
    path = Path(os.environ.get("BOXCAR_OUT") or ".", TRAINING_FILE).absolute()
    try:
        before = _read(path)
        after = merged(before, _this_start(path), plain(facts))
        if after != before:
            atomic.write_whole(path, codec.to_document(after))
    except OSError as error:
        say_once(f"{path}: the training's facts are not written: {error.strerror}")


def merged(before: Training | None, start: Start, facts: dict[str, Any]) -> Training:
    """The manifest after `facts` became known in the process that began as `start`."""
    starts = before.starts if before else ()
    if not starts or starts[-1].at != start.at:
        starts = (*starts, start)
    newest = dataclasses.replace(starts[-1], extra=starts[-1].extra | facts)
    own = {"torch": start.torch, "python": start.python, "world": start.world}
    return Training((*starts[:-1], newest), (before.extra if before else {}) | own | facts)


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts as they come back from JSON, so that an unchanged file is seen to be unchanged."""
    found: dict[str, Any] = json.loads(json.dumps(codec.finite(facts), default=str))
    return found


@functools.cache
def _this_start(path: Path) -> Start:
    """Once for each process and cell."""
    import torch

    world = os.environ.get("WORLD_SIZE", "1")
    return Start(
        at=timestamp.utc_now(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        world=int(world) if world.isdecimal() else 1,
    )


def _read(path: Path) -> Training | None:
    try:
        return codec.from_document(Training, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        aside = _kept_aside(path)
        say_once(f"{error}. It is kept as {aside.name}, and a new one is begun")
        return None


def _kept_aside(path: Path) -> Path:
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    path.rename(aside)
    return aside
