"""What is known of an ended attempt beside its log: what GPUs say, and torchrun's error file."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from boxcar.shared.disk import regular_file
from boxcar.shared.triage import exit_signals
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.log_lines import Tail
from onbox.machine import gpus

_ERROR_FILE = re.compile(r"/\S{1,400}/error\.json")
_MOST_BYTES = 1024 * 1024


# What NVML says of a GPU that is gone; that a GPU lacks some gauge says nothing.
_GONE = re.compile(r"(?i)is lost|unknown error|mismatch|reset|fallen|not found")


def beside(tail: Tail, own: Collection[str] = ()) -> Evidence:
    """`own`: the GPUs that the attempt had for itself; none: all of the box."""
    return Evidence(
        log_begins_at_line=tail.begins_at_line,
        gpu_problems=_gpu_problems(own),
        error_file=error_file(tail.text),
    )


def error_file(log: str) -> str:
    """The traceback in it; '' where there is none. A script may have written that path: only a
    regular file is opened, and only a text of the right form is taken from it.
    """
    path = exit_signals.root_cause(log).get("error_file", "")
    if not _ERROR_FILE.fullmatch(path):
        return ""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return _traceback(json.loads(regular_file.read_at(Path(path), _MOST_BYTES)))
    return ""


def _traceback(document: Any) -> str:
    message = document.get("message") if isinstance(document, dict) else None
    more = message.get("extraInfo") if isinstance(message, dict) else None
    stack = more.get("py_callstack") if isinstance(more, dict) else None
    return stack if isinstance(stack, str) else ""


def _gpu_problems(own: Collection[str]) -> tuple[str, ...]:
    """Of a GPU that another cell has, nothing: this one ended for another reason."""
    rows = gpus.ask_child()
    is_told = not own or not all(gpu.isdigit() for gpu in own)  # a slice's card is not known
    said = [
        (at, str(row.get("problem", "")))
        for at, row in enumerate(rows)
        if is_told or str(at) in own
    ]
    return tuple(f"GPU {at}: {problem}" for at, problem in said if _GONE.search(problem))
