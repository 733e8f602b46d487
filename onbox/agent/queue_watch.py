"""Noticing that a queue file or a control file has changed, without asking all the time.

inotify where the kernel tells, polling where it cannot: on a network file system the kernel knows
nothing of what other hosts write. Which of the two, is decided by the file system's type. Under
both lies a slow re-read: the agent never waits longer than `FLOOR_S` before it looks by itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from watchdog.events import (
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)

from boxcar.shared.disk import mounts

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

FLOOR_S = 5.0
POLL_S = 1.0
# The kernel is asked for no more. Reading is an event too, "opened", of which threads would wake up
# beside each look of ours: between two cells that is a millisecond.
_CHANGES: list[type[FileSystemEvent]] = [
    *(FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent)
]


class QueueWatch:
    """Watches a few folders (not what is below them); `wait` returns early when one changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._changed = threading.Event()
        self._folders = folders
        self._observer = _observer(any(is_remote(folder) for folder in folders))

    def __enter__(self) -> QueueWatch:
        try:
            self._start()
        except OSError:
            # The box may have used up its inotify instances or watches.
            self._observer = _observer(polls=True)
            self._start()
        return self

    def _start(self) -> None:
        for folder in self._folders:
            handler = _Handler(self._changed)
            self._observer.schedule(handler, str(folder), recursive=False, event_filter=_CHANGES)
        self._observer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._observer.stop()
        self._observer.join()

    def wait(self, timeout_s: float) -> None:
        """Until something changed, at most `timeout_s` seconds and never longer than the floor."""
        self._changed.wait(min(timeout_s, FLOOR_S))
        self._changed.clear()

    def wake(self) -> None:
        """End a wait from a signal handler."""
        self._changed.set()


def is_remote(folder: Path) -> bool:
    """Whether other hosts may write there; False where the system does not tell."""
    mount = mounts.mount_of(folder)
    return mount is not None and mount.is_remote


def _observer(polls: bool) -> BaseObserver:
    if polls or sys.platform != "linux":
        from watchdog.observers.polling import PollingObserver

        return PollingObserver(timeout=POLL_S)
    from watchdog.observers.inotify import InotifyObserver

    return InotifyObserver()


class _Handler(FileSystemEventHandler):
    def __init__(self, changed: threading.Event) -> None:
        self._changed = changed

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._changed.set()
