"""What is judged later than it happens, so that no step waits for a GPU.

Whoever keeps something of the training settles it first, as Checkpointer does, and so does the end
of the interpreter: nothing that should have been an error ends as a success.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Protocol

from boxcar.shared.errors import BoxcarError


class Unsettled(Protocol):
    def settle(self, *, is_alone: bool = False) -> None:
        """Raise what is known by now to have been wrong; `is_alone`: asks no other rank."""


_waiting: weakref.WeakSet[Unsettled] = weakref.WeakSet()


def add(one: Unsettled) -> None:
    """Have it settled before anything is kept."""
    _waiting.add(one)


def settle(*, is_alone: bool = False) -> None:
    """A collective where training is, as all ranks came to the same. Raises a BoxcarError."""
    for one in list(_waiting):
        one.settle(is_alone=is_alone)


@atexit.register
def _settle_at_the_end() -> None:
    try:
        settle(is_alone=True)
    except BoxcarError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # What an exit function raises is printed, and the process ends as if all were well.
        os._exit(error.exit_code)
