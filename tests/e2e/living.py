"""The processes that a test has started, found by the folder that they work in, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waiting import looks

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """`words` is its command line, in one text for looking at."""

    pid: int
    words: str


def living(folder: Path) -> list[Process]:
    """Every process that names `folder` in its command line, environment or current folder."""
    mine = os.getpid()
    found = (_process(entry, os.fsencode(folder)) for entry in _PROC.glob("[0-9]*"))
    return [process for process in found if process and process.pid != mine]


def kill(process: Process) -> bool:
    """`kill -9`; False where it was gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
        return True
    return False


def kill_all(folder: Path) -> None:
    """Kill until nothing of `folder` is left: a parent may start another meanwhile."""
    for _ in looks(lambda: f"these are gone: {living(folder)}"):
        if not (processes := living(folder)):
            return
        for process in processes:
            kill(process)


def _process(entry: Path, folder: bytes) -> Process | None:
    """Another user's process, a zombie, or one that ended just now, reads as None."""
    with contextlib.suppress(OSError):
        words = (entry / "cmdline").read_bytes()
        if words and any(folder in text for text in _texts(entry, words)):
            return Process(int(entry.name), words.replace(b"\0", b" ").decode("utf-8", "replace"))
    return None


def _texts(entry: Path, words: bytes) -> Iterator[bytes]:
    yield words
    yield (entry / "environ").read_bytes()
    yield os.fsencode(os.readlink(entry / "cwd"))  # noqa: PTH115  (may be a deleted folder)
