"""One line on stderr for the person who reads the cell's log. It never ends a training."""

from __future__ import annotations

import contextlib
import functools
import os
import sys


def say(text: str) -> None:
    """From whoever calls; lost where stderr is closed or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        print(f"boxcar: {text}", file=sys.stderr, flush=True)


@functools.cache
def say_once(text: str) -> None:
    """Once in this process."""
    say(text)


def say_on_main(text: str) -> None:
    """From rank 0 alone."""
    if os.environ.get("RANK", "0") == "0":
        say(text)


def size_text(size_bytes: float) -> str:
    """`317 MB`: three digits and a unit, in thousands as disks and networks count."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 999.5:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} TB"
