"""Tells a dead-man's service that this box gets on; where it hears nothing, the service speaks.

A sign goes out on progress only: a new line of a log, a step, a byte of a result that is settled.
An agent that waits for lines gets on, too; one that hangs does not. By a thread, for a name server
may hang; nobody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from boxcar.shared.channels import dead_man
from boxcar.shared.channels.answer import Answer, Endpoint, Refused, Taken
from boxcar.shared.sentence import Sentence, _
from onbox.machine.credentials import Heartbeat
from onbox.webhooks import post

# After a sign that nobody took.
AGAIN_S = 30.0
# A service that is away for a moment is no news.
TOLD_AFTER = 3

Send = Callable[[Endpoint], Answer]


def _send(endpoint: Endpoint) -> Answer:
    return post.post_once(endpoint, "").answer


class LifeSigns:
    def __init__(
        self,
        checks: Sequence[Heartbeat],
        box: str,
        *,
        send: Send = _send,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        filled = [replace(one, url=dead_man.filled(one.url, box)) for one in checks]
        self._checks = [_Check(one, send, clock) for one in filled]

    def look(self, sign: Callable[[], object]) -> None:
        """Send what is due. `sign` gives what differs from before where the box got on; None where
        it rightly does nothing.
        """
        due = [one for one in self._checks if one.is_due]
        if due:
            found = sign()
            for one in due:
                one.take(found)

    def problems(self) -> list[Sentence]:
        """What a person should know, without a secret."""
        return [one.problem for one in self._checks if one.problem]


class _Check:
    """One address of one service."""

    def __init__(self, check: Heartbeat, send: Send, clock: Callable[[], float]) -> None:
        self._every_s, self._send, self._clock = check.every_s, send, clock
        self._to = Endpoint(dead_man.HEARTBEAT, check.url)
        self._thread: threading.Thread | None = None
        self._next_at, self._failures = clock(), 0
        self._taken: object = object()  # the sign that was taken last; none is equal to this
        self.problem: Sentence | None = None

    @property
    def is_due(self) -> bool:
        is_busy = self._thread is not None and self._thread.is_alive()
        return self._clock() >= self._next_at and not is_busy

    def take(self, sign: object) -> None:
        if sign is not None and sign == self._taken:
            return
        self._next_at = self._clock() + AGAIN_S
        work = threading.Thread(target=self._tell, args=(sign,), name="life-sign", daemon=True)
        self._thread = work
        work.start()

    def _tell(self, sign: object) -> None:
        found = self._send(self._to)
        if isinstance(found, Taken):
            self._taken, self._failures, self.problem = sign, 0, None
            self._next_at = self._clock() + self._every_s
            return
        self._failures += 1
        if isinstance(found, Refused) or self._failures >= TOLD_AFTER:
            self.problem = _(
                "heartbeat: the service does not take the signs of life ({why}), so it will call "
                "this box silent",
                why=found.why,
            )
