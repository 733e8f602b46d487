"""Optional progress of a train script: lines of JSON in `$BOXCAR_OUT/progress.jsonl`.

    from boxcar.training import progress
    progress.report(step=step, epoch=epoch, loss=loss)

Rank 0 of the cell writes, the agent reads. Without BOXCAR_OUT the file lies in the working folder.
No step waits: the disk, and a number that is still being computed on a GPU, are waited for in a
thread (reporting/progress_writer.py).

Not covered: the last lines before a crash (they are not fsynced, and a SIGKILL loses what the
thread had not written yet), and two processes that both say they are rank 0 of one cell.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.files.progress import FILE, to_line
from boxcar.training import stall
from boxcar.training.reporting import soon
from boxcar.training.reporting.progress_writer import ProgressWriter

_LONGEST_TEXT = 200
_writers: dict[tuple[int, str], ProgressWriter] = {}


def report(*, step: int, **values: Any) -> None:
    """Append one line: `{"step": 120, "at": "...Z", "loss": 0.41}`. Only rank 0 does.

    A number may be a tensor or array that holds one; what is no number, text or truth is written as
    its text. NaN and Inf become null, and `nonfinite` names them. `at`, `nonfinite` and `dropped`
    are taken. A full disk or a vanished folder is said once on stderr: training must not die of its
    progress.
    """
    stall.beat()
    if os.environ.get("RANK", "0") != "0":
        return
    taken = {"step": step, **values, "at": timestamp.utc_now()}
    held = {name: _held(value) for name, value in taken.items()}
    _writer().put(lambda dropped: _line(held, dropped))


def flush() -> None:
    """Wait, at most some seconds, until all lines are written; before `os._exit`."""
    for (pid, _), writer in list(_writers.items()):
        if pid == os.getpid():
            writer.flush()


def _writer() -> ProgressWriter:
    """One for each file and process: a fork has the parent's objects, and none of its threads."""
    folder = os.environ.get("BOXCAR_OUT") or "."
    if not os.path.isabs(folder):  # noqa: PTH117  (a Path costs half of a report)
        folder = str(Path(folder).absolute())
    key = (os.getpid(), folder)
    if key not in _writers:
        _writers[key] = ProgressWriter(Path(folder, FILE))
    return _writers[key]


def _line(held: dict[str, Callable[[], Any]], dropped: int) -> bytes:
    plain = {name: value() for name, value in held.items()}
    nonfinite = [name for name, value in plain.items() if _is_nonfinite(value)]
    record = {name: None if name in nonfinite else value for name, value in plain.items()}
    if nonfinite:
        record["nonfinite"] = nonfinite
    if dropped:
        record["dropped"] = dropped
    return to_line(record)


def _held(value: Any) -> Callable[[], Any]:
    """What gives the value later, as it is now: a training changes its tensors in place."""
    if getattr(value, "is_cuda", False):
        return _held_on_gpu(value)
    plain = _plain(value)
    return lambda: plain


def _held_on_gpu(value: Any) -> Callable[[], Any]:
    """Reading a GPU's number waits for all that the GPU still has to do: the thread does it."""
    if value.numel() != 1:
        text = f"tensor of shape {tuple(value.shape)} on {value.device}"
        return lambda: text
    read = soon.on_its_way(value)
    return lambda: _plain(read())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        # A tensor or a NumPy number, told by its method: torch is not imported for this.
        item = value.item()
    except (AttributeError, ValueError, RuntimeError):
        item = None
    return item if isinstance(item, (bool, int, float)) else str(value)[:_LONGEST_TEXT]


def _is_nonfinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
