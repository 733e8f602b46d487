"""Whether all losses and gradients were finite, added up on the device and read seldom.

To read a number each step is to wait for the GPU each step. Here each window adds `0 * number` to
a sum on the device, which is 0 until one of them is no finite number. Every so many windows it is
copied to the host, and read when the next copy begins, so nobody waits. It is read at once before a
checkpoint is written, when the ranks leave, and at the interpreter's end.

Not covered: os._exit, and a checkpoint that a script writes by itself.
"""

from __future__ import annotations

import atexit
import math
import sys
from collections.abc import Callable, Iterable

from torch import Tensor

from boxcar.shared.errors import DivergedError
from boxcar.training.reporting import soon
from boxcar.training.reporting.say import say

# Those that nobody has read to their end; each is small.
_kept: list[FiniteCheck] = []


class FiniteCheck:
    """The losses and gradients of one accumulator. No collective: each rank reads its own."""

    grad_norm: float = math.nan
    """The newest that was read."""

    def __init__(self, every: int) -> None:
        self._every, self._windows = every, 0
        self._sums: dict[tuple[str, str], Tensor] = {}
        self._coming: list[Callable[[], None]] = []
        self._since: int | None = None
        self._until = 0
        _kept.append(self)

    def note(self, step_idx: int, losses: Iterable[Tensor], norm: Tensor | None) -> None:
        """One window's; raises DivergedError for an earlier one's, or on a CPU for this one's."""
        self._since = step_idx if self._since is None else self._since
        self._until = step_idx
        for loss in losses:
            self._add("loss", loss)
        if norm is not None:
            self._add("gradient", norm.to_local() if hasattr(norm, "to_local") else norm)
        self._windows += 1
        if self._windows % self._every == 0:
            self._look(norm)

    def read(self) -> None:
        """All that was noted until now; waits for the GPU. Raises DivergedError, once."""
        self._coming.clear()
        self._judge({what: float(total) for (what, _), total in self._sums.items()})

    def _add(self, what: str, number: Tensor) -> None:
        number = number.detach()
        place = what, str(number.device)
        if place not in self._sums:
            self._sums[place] = number.new_zeros(())
        self._sums[place].add_(number, alpha=0)

    def _look(self, norm: Tensor | None) -> None:
        if not any(total.is_cuda for total in self._sums.values()):
            self.grad_norm = math.nan if norm is None else float(norm)
            self.read()
            return
        before, self._coming = self._coming, []
        for take in before:
            take()
        for (what, _), total in self._sums.items():
            self._coming.append(self._later(what, soon.on_its_way(total)))
        if norm is not None and not hasattr(norm, "to_local"):
            self._coming.append(self._norm_later(soon.on_its_way(norm)))

    def _later(self, what: str, number: Callable[[], float]) -> Callable[[], None]:
        return lambda: self._judge({what: number()})

    def _norm_later(self, number: Callable[[], float]) -> Callable[[], None]:
        def take() -> None:
            self.grad_norm = number()

        return take

    def _judge(self, sums: dict[str, float]) -> None:
        bad = [what for what, total in sums.items() if not math.isfinite(total)]
        since, self._since = self._since, None
        if not bad:
            return
        self._sums.clear()
        self._coming.clear()
        which = "a loss" if "loss" in bad else "a gradient, though no loss of this rank,"
        raise DivergedError(
            f"{which} was not finite at one of step_idx {since} to {self._until} or before (looked "
            f"at every {self._every} windows): look at the batch, then at the learning rate; no "
            "checkpoint was written since"
        )


def settle() -> None:
    """Read what every check holds; DivergedError where it is no finite number."""
    for check in _kept:
        check.read()


def let_go() -> None:
    """After the last step: read all, and forget the checks."""
    try:
        # An error that is on its way says more.
        if sys.exc_info()[0] is None:
            settle()
    finally:
        _kept.clear()


@atexit.register
def end_if_diverged() -> None:
    """A training that ends with 0 would be taken for a good one."""
    if hasattr(sys, "last_value"):
        return
    try:
        let_go()
    except DivergedError as error:
        from boxcar.training.hang.stall_watch import end_process

        say(str(error))
        end_process(error.exit_code)
