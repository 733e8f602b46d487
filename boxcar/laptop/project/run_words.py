"""`run: bash run_queue.sh queue.txt` of job.yaml: another way to name the queues.

Nothing of it is run as it stands: the words say which files are queues, and Boxcar's own wrapper
runs them.
"""

from __future__ import annotations

import shlex
from string import ascii_lowercase

_PROGRAM = ["bash", "run_queue.sh"]
SCRIPT = _PROGRAM[1]


def queues_of(text: object) -> dict[str, str]:
    """Queue file -> box-a, box-b, ... Raises ValueError for any other words."""
    words = shlex.split(text) if isinstance(text, str) else []
    files = words[len(_PROGRAM) :]
    if words[: len(_PROGRAM)] != _PROGRAM or not files:
        raise ValueError(f"expected {' '.join(_PROGRAM)} FILE [FILE ...], found {text!r}")
    if len(files) > len(ascii_lowercase):
        raise ValueError(f"{len(files)} queues: name each with its box, under queues:")
    return {file: f"box-{letter}" for file, letter in zip(files, ascii_lowercase, strict=False)}
