"""Optional progress of a train script: lines of JSON in `$BOXCAR_OUT/progress.jsonl`.

    from boxcar.training import progress
    progress.report(step=step, epoch=epoch, loss=loss)

Rank 0 of the cell writes, the agent reads. Without BOXCAR_OUT the file lies in the working folder.

Not covered: a value that was lost in a crash (lines are not fsynced), and two processes that both
say they are rank 0 of one cell.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from boxcar.formats import timestamp

FILE = "progress.jsonl"
_LONGEST_TEXT = 200


def report(*, step: int, **values: Any) -> None:
    """Append one line: `{"step": 120, "at": "...Z", "loss": 0.41}`. Only rank 0 does.

    A number may be a tensor or array that holds one; what is no number, text or truth is written as
    its text. NaN and Inf become null, and `nonfinite` names them. `at` and `nonfinite` are taken.
    A full disk or a vanished folder is said once on stderr: training must not die of its progress.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    path = Path(os.environ.get("BOXCAR_OUT") or ".", FILE)
    try:
        _append_whole(path, _line({"step": step, **values, "at": timestamp.utc_now()}))
    except OSError as error:
        _say_once(f"{path}: progress is not written: {error.strerror}")


def _line(values: dict[str, Any]) -> bytes:
    plain = {name: _plain(value) for name, value in values.items()}
    nonfinite = [name for name, value in plain.items() if _is_nonfinite(value)]
    record = {name: None if name in nonfinite else value for name, value in plain.items()}
    if nonfinite:
        record["nonfinite"] = nonfinite
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a surrogate pair is text in Python and in no file.
    return line.encode("utf-8", "replace")


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


def _append_whole(path: Path, line: bytes) -> None:
    """One write, so that readers never meet half a line; what a full disk cut is taken back."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size_bytes = os.fstat(fd).st_size
        if os.write(fd, line) < len(line):
            os.ftruncate(fd, size_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


@functools.cache
def _say_once(text: str) -> None:
    # stderr may be a log on the same full disk.
    with contextlib.suppress(OSError):
        print(f"boxcar: {text}", file=sys.stderr, flush=True)
