"""How a queue ends: what is settled and copied before, what is said, and the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from boxcar.shared import state
from boxcar.shared.process import end_reason, exit_codes
from boxcar.shared.sentence import _, chained, mark
from onbox.agent.loop import Loop
from onbox.agent.outcome import StopQueue
from onbox.agent.runner import TICK_S
from onbox.agent.second_home import SecondHome
from onbox.machine import room_wait, terminal
from onbox.queue.lines import Lines

FLUSH_S = 10.0


class Ending:
    def __init__(self, loop: Loop, lines: Lines, second: SecondHome | None) -> None:
        self._loop, self._lines, self._second = loop, lines, second

    def raise_settling_failure(self) -> None:
        """Raises StopQueue where a result could not be settled."""
        for error in self._loop.settler.failures():
            is_full = room_wait.is_no_room(error)
            exit_code = exit_codes.NO_ROOM if is_full else exit_codes.STOP_QUEUE
            text = _("a result could not be published: {why}", why=room_wait.reason(error))
            raise StopQueue(text, exit_code) from error

    def wait_for_settling(self) -> None:
        while self._loop.settler.is_busy:
            if self._loop.orders.is_to_stop:
                self._loop.settler.hurry()
            self.raise_settling_failure()
            self._loop.tick()
            self._loop.settler.wait(TICK_S)

    def wait_for_copies(self, has_more: Callable[[], bool]) -> None:
        """Unless there is something to run again."""
        if self._second:
            orders = self._loop.orders
            self._second.try_to_the_end(self._loop.tick, lambda: orders.is_to_stop, has_more)

    def end_copies(self) -> None:
        """Before the lock is free: nobody writes to the journal after that."""
        if self._second:
            self._second.close()

    def done(self) -> int:
        """The queue is done, unless it was to end before."""
        if self._loop.orders.is_to_end:
            return self.stopped(
                self._loop.orders.reason, self._loop.orders.exit_code, self._loop.orders.by
            )
        states = [record.state for record in self._loop.reporter.state().cells.values()]
        verified = sum(isinstance(cell, state.Verified) for cell in states)
        failed = sum(isinstance(cell, state.Failed) for cell in states)
        skipped = chained(mark("{first}; {second}"), self._lines.left_open())
        about = {"unfit": unfit} if (unfit := self._lines.unfit) else {}
        self._loop.say(
            "queue.done", verified=verified, failed=failed, reason=skipped or None, **about
        )
        self._leave(_("the queue is done"), end_reason.DONE)
        return exit_codes.FAILED if failed or skipped else exit_codes.DONE

    def turn_over(self) -> int:
        """One cell for each start was asked for: the next start takes the next one, if there is."""
        self._lines.read()
        has_more = self._lines.is_typed or self._lines.next() is not None
        if self._loop.orders.is_to_end or not has_more:
            return self.done()
        self._leave(_("one cell for each task: the next task takes the next cell"), end_reason.TURN)
        return exit_codes.PREEMPTED

    def stopped(self, reason: str, exit_code: int, by: str = end_reason.TROUBLE) -> int:
        """The journal first: the terminal is a log on a disk that may be full."""
        self._loop.settler.close()
        # The durable tier itself may be what is gone.
        with contextlib.suppress(OSError):
            self._loop.reporter.say("queue.stopped", reason=reason, by=by)
            self._leave(reason, by)
        told = self._loop.reporter.secrets.known().left_out_of(reason)
        terminal.say(f"{self._loop.place.queue} stopped: {told}")
        return exit_code

    def _leave(self, reason: str, by: str) -> None:
        self._loop.settler.close()
        self.end_copies()
        self._loop.reporter.say("agent.stopped", reason=reason, by=by)
        self._loop.beat.ends_all()
        self._loop.tick()
        self._loop.reporter.close(FLUSH_S)
