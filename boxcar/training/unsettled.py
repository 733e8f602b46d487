"""What is judged later than it happens, so that no step waits for a GPU.

Whoever keeps something of the training settles it first, as Checkpointer does, and so do
`ranks.leave` and the end of the interpreter: what should have been an error ends as no success.

Not covered: a script that ends by os._exit, with no save and no `ranks.leave` after its last step.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Protocol

from boxcar.shared.errors import BoxcarError


class Unsettled(Protocol):
    def settle(self, *, is_alone: bool = False) -> None:
        """Raise what is known by now to have been wrong; `is_alone`: asks no other rank."""


# In the order in which they came, which is the same on all ranks, with the process. They are held:
# what a function trained with is gone before the interpreter ends.
_waiting: dict[Unsettled, int] = {}


def add(one: Unsettled) -> None:
    """Have it settled before anything is kept."""
    _waiting[one] = os.getpid()


def drop(one: Unsettled) -> None:
    """It is settled."""
    _waiting.pop(one, None)


def settle(*, is_alone: bool = False) -> None:
    """A collective where training is, as all ranks came to the same. Raises a BoxcarError."""
    for one, pid in list(_waiting.items()):
        drop(one)
        if pid == os.getpid():  # a fork can ask no GPU
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
