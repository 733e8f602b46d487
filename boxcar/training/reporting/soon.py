"""A number that a GPU still computes, on its way to the host.

Whoever reads it waits for that number alone, and not for all that the GPU was given since; and asks
the driver for nothing, so that a thread that reads holds up no launch of another.

Importing this imports no torch: a script that only reports its progress needs none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Number = float | int | bool


def on_its_way(number: Tensor) -> Callable[[], Number]:
    """What gives the one number of a tensor as it is now, of any device, once it is computed."""
    torch = sys.modules["torch"]
    copied = number.detach().to("cpu", non_blocking=True, copy=True)
    if not number.is_cuda:
        return copied.item
    # Who waits sleeps: the default one takes a core meanwhile.
    event = torch.cuda.Event(blocking=True)
    event.record(torch.cuda.current_stream(number.device))

    def read() -> Number:
        event.synchronize()
        return copied.item()

    return read
