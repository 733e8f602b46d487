"""What one command leaves lying about in memory, which the kernel takes back at its end.

To look through it again and again as it grows was a third of `status` of 100,000 cells, which are
four million objects; to take apart at the end what was imported was a fifth of a `status` of ten.
"""

from __future__ import annotations

import atexit
import gc


def let_it_lie() -> None:
    """For the rest of this process. What a watch of a night leaves behind is looked for all the
    same, and what was registered for the end of the interpreter is done.
    """
    gc.set_threshold(5_000_000, 20, 100)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
