"""Which samples each step drew, noted for a rehearsal; in any other run nothing is done.

    data_order.note(epoch, batch, indexes)

Call it when a batch is handed to the training loop, on every rank. `python -m
boxcar.training.rehearse` names the folder in BOXCAR_REHEARSE_ORDER and compares what an
uninterrupted run drew with what a killed one drew. `RankAwareDataLoader` calls it by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

FOLDER = "BOXCAR_REHEARSE_ORDER"


def is_noted() -> bool:
    """Whether a rehearsal wants to know: who has to make the numbers asks first."""
    return bool(os.environ.get(FOLDER))


def note(epoch: int, batch: int, indexes: Iterable[int]) -> None:
    """Append one line: `{"epoch": 0, "batch": 3, "samples": 32, "digest": "9f86d081884c7d65"}`.

    `indexes` are the samples of this rank's batch in their order: numbers, or a tensor [batch] of
    whole numbers. Raises OSError where the line cannot be written: a rehearsal without it would
    compare less than it says.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    numbers = [int(index) for index in indexes]
    digest = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]
    line = {"epoch": int(epoch), "batch": int(batch), "samples": len(numbers), "digest": digest}
    path = Path(folder, f"rank-{os.environ.get('RANK', '0')}.jsonl")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, json.dumps(line).encode() + b"\n")
    finally:
        os.close(fd)
