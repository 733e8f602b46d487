"""Leaving in time: a signal sets a flag, all ranks agree on the step, the script saves and leaves.

    preemption = Preemption()
    ...
    if preemption.should_stop():        # after each step, on all ranks
        checkpointer.save()
        preemption.exit()               # code 85: preempted, the same command goes on

SIGTERM (torchrun, the agent, most platforms) and SIGUSR1 (Slurm's `--signal=USR1@60`). A question
that is asked at one step is answered at the next, so no step waits for the answer: the training's
own messages between the two take longer. Signals reach Python between two operations; one that runs
inside a long C++ call is seen when the call has ended.

Not covered: a platform that kills without a signal. For that there is the cadence of saves.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from boxcar.shared import exit_codes
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training import stall
from boxcar.training.ranks import ranks
from boxcar.training.ranks.side_group import SideGroup, left

EXIT_PREEMPTED = exit_codes.PREEMPTED
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
# A rank may measure or save for minutes while the others wait in their next step.
PATIENCE_S = 1800.0


class Preemption:
    """Installs the handlers. All ranks make one, in the main thread, after they have joined."""

    def __init__(self) -> None:
        self.asked = False
        """Whether this rank got a signal; the others may not know yet."""
        self._side = SideGroup(PATIENCE_S)
        self._agreed = False
        self._work: Any = None
        self._answer = torch.zeros(1, dtype=torch.int32)
        try:
            for number in SIGNALS:
                signal.signal(number, self._on_signal)
        except ValueError:
            raise InputError(
                "Preemption() was made in a thread; signals come to the main thread: make it there"
            ) from None

    def should_stop(self) -> bool:
        """Whether to save and leave now: the same answer on all ranks, one step after the signal.

        All ranks call it after each step. Once True it stays True. Raises TemporaryError when
        another rank has left.
        """
        if self._side.world == 1:
            return self.asked
        if not self._agreed:
            self._agreed = self._read()
        if not self._agreed:
            self._ask()
        return self._agreed

    def exit(self) -> NoReturn:
        """Leave with EXIT_PREEMPTED, all ranks together.

        torchrun sends SIGTERM to the others as soon as one has left, and Python gives the signal
        its deadly default back while it shuts down: so it is ignored from here on.
        """
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # Nobody leaves before all can: torchrun kills the others 30 s after the first has left.
        with contextlib.suppress(TemporaryError):
            self._side.gather(b"")
        self._work = None
        ranks.leave()
        sys.exit(EXIT_PREEMPTED)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Nothing else: it interrupts any line of the script.
        self.asked = True

    def _ask(self) -> None:
        self._answer.fill_(int(self.asked))
        try:
            self._work = dist.all_reduce(
                self._answer, op=dist.ReduceOp.MAX, group=self._side.group, async_op=True
            )
        except RuntimeError as error:
            raise left(error) from error

    def _read(self) -> bool:
        """The answer to the last step's question; False where none was asked."""
        work, self._work = self._work, None
        if work is None:
            return False
        try:
            with stall.patient():
                work.wait()
        except RuntimeError as error:
            raise left(error) from error
        return bool(self._answer.item())
