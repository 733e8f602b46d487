"""Of several launches of a run from one project, one at a time sends and starts.

Two at once with different code would start some queues from one release and some from the other.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from boxcar.laptop.common import home
from boxcar.laptop.run.open_run import Tell
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.message import Command
from boxcar.shared.paths import ResultPaths

TURN_FILE = ".launching"
WAIT_S = 1800.0  # a release of some gigabytes over a slow line
_LOOK_EVERY_S = 0.2


@contextlib.contextmanager
def take_turn(results: ResultPaths, tell: Tell) -> Iterator[None]:
    """Wait for the launch that is under way, and be the only one then.

    Raises TemporaryError where that one does not come to its end.
    """
    with home.results_to(results.root):
        atomic.make_folder(results.root)
        fd = _wait(results, tell)
    try:
        yield
    finally:
        os.close(fd)


def _wait(results: ResultPaths, tell: Tell) -> int:
    path = results.root / TURN_FILE
    if (fd := lock.try_hold(path)) is not None:
        return fd
    tell(
        "another launch of this run is at work; this one continues when that has started its queues"
    )
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
        if (fd := lock.try_hold(path)) is not None:
            return fd
    raise TemporaryError(
        "another launch of this run is still at work; nothing was sent or started here. See what "
        "it has started",
        Command("status"),
    )
