"""The standard streams of a command, so that neither a closed pipe nor an old terminal ends it."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TextIO


def replace_unwritable() -> None:
    """A character that stdout cannot write becomes `?`: in a C locale, an old terminal, a pipe. A
    stream that was closed (`>&-`) is one that nobody reads.
    """
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def say_no_more() -> None:
    """Who read our words has read enough, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
