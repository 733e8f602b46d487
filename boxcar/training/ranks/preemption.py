"""Leaving in time: a signal sets a flag, all ranks agree on the step, the script saves and leaves.

    preemption = Preemption()
    ...
    if preemption.should_stop():        # after each step, on all ranks
        checkpointer.save()
        preemption.exit()               # code 85: preempted, the same command goes on

SIGTERM (torchrun, the agent, most platforms) and SIGUSR1 (Slurm's `--signal=USR1@60`). A question
that is asked at one step is answered at the next, so no step waits for the answer: the training's
own messages between the two take longer. Where steps are much shorter than PAUSE_S it is asked at
some of them only, and with each answer all ranks agree on the next. Signals reach Python between
two operations; one that runs inside a long C++ call is seen when the call has ended.

Not covered: a platform that kills without a signal. For that there is the cadence of saves.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import FrameType
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.process import exit_codes
from boxcar.training import stall
from boxcar.training.ranks import ranks
from boxcar.training.ranks.side_group import SideGroup, left

EXIT_PREEMPTED = exit_codes.PREEMPTED
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
# A rank may measure or save for minutes while the others wait in their next step.
PATIENCE_S = 1800.0
# Between two questions, each of which costs a core 0.1 ms or more.
PAUSE_S = 0.05
# A step may take longer than those before it, and what a platform gives are seconds.
MOST_STEPS = 16


class Preemption:
    """Installs the handlers. All ranks make one, in the main thread, after they have joined."""

    def __init__(self) -> None:
        self.asked = False
        """Whether this rank got a signal; the others may not know yet."""
        self._side = SideGroup(PATIENCE_S)
        self._agreed = False
        self._work: Any = None
        # Whether to stop; and for how many steps not to ask, negative: the fewest that a rank says.
        self._answer = torch.zeros(2, dtype=torch.int32)
        self._unasked = 0
        self._steps, self._asked_s = 0, 0.0  # since the last question
        try:
            for number in SIGNALS:
                signal.signal(number, self._on_signal)
        except ValueError:
            raise InputError(
                "Preemption() was made in a thread; signals come to the main thread: make it there"
            ) from None

    def should_stop(self) -> bool:
        """Whether to save and leave now: the same answer on all ranks, a step after the signal, or
        about PAUSE_S where steps are shorter.

        All ranks call it after each step. Once True it stays True. Raises TemporaryError when
        another rank has left.
        """
        if self._side.world == 1:
            return self.asked
        self._steps += 1
        if self._unasked:
            self._unasked -= 1
            return False
        self._agreed = self._agreed or self._read()
        if not self._agreed and not self._unasked:
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
        self._answer[0], self._answer[1] = int(self.asked), -self._steps_without()
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
        is_asked, unasked = self._answer.tolist()
        self._unasked = -unasked
        return bool(is_asked)

    def _steps_without(self) -> int:
        """How many steps may pass after the answer, by what those since the last question took."""
        now_s, steps = time.monotonic(), self._steps
        took_s, is_first = now_s - self._asked_s, not self._asked_s
        self._steps, self._asked_s = 0, now_s
        if is_first:
            return 0
        in_pause = (
            MOST_STEPS if took_s * MOST_STEPS < PAUSE_S * steps else PAUSE_S * steps // took_s
        )
        return max(0, int(in_pause) - 2)
