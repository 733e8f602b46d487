"""Sends the journal's events to webhooks and chats: at least once, in order.

The journal is the outbox and `delivered/<queue>.json` a cursor over it for each endpoint. The
cursor moves only after an endpoint took an event, so an agent that was killed in between sends it
again (a webhook with the same id). One thread for each endpoint: one that is down holds up no
other. Whoever uses this holds the queue's lock; one that lingers ends when somebody takes it.

A URL is as secret as its secret: neither gets into the cursor, a log, an error or a repr.

Not covered: a name server that hangs, and an answer that drips in byte by byte. Both hold up their
own endpoint only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.channels import answer
from boxcar.shared.channels.answer import WEBHOOK
from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.news.wanted import is_told
from boxcar.shared.paths import DurablePaths
from onbox.machine import credentials
from onbox.machine.credentials import Credentials, Webhook
from onbox.webhooks.endpoint import Cursors, EndpointThread, Wait
from onbox.webhooks.journal_tail import JournalTail, count_lines

DAY_S = 86_400.0
_LOOK_S = 0.5


class Deliverer:
    """The endpoints of one queue, as threads of the agent. Without any it does nothing."""

    def __init__(
        self,
        journal: Path,
        cursor: Path,
        webhooks: Sequence[Webhook],
        chats: Sequence[answer.Endpoint] = (),
        language: str = "en",
        *,
        sharing: int = 1,
        wait: Wait = threading.Event.wait,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`sharing`: how many queues of the run send to the same robots, each its part."""
        self._journal = journal
        self._cursors = cursors = Cursors(cursor)
        hooks = [answer.Endpoint(WEBHOOK, one.url, one.secret) for one in webhooks]
        self._endpoints = [
            EndpointThread(
                *(one, journal, cursors, wait), language=language, sharing=sharing, clock=clock
            )
            for one in (*hooks, *chats)
        ]

    def start(self) -> None:
        """Under the queue's lock. Raises DamagedError where the cursor cannot be read, OSError."""
        if self._endpoints and self._journal.exists():
            # A killed agent may have left what only memory held; a sent event has to outlast it.
            atomic.sync_file(self._journal)
        self._cursors.load(count_lines(self._journal))
        self.wake()
        for endpoint in self._endpoints:
            endpoint.thread.start()

    def wake(self) -> None:
        """The journal is durable up to here. For its writer, before it appends anything more."""
        if self._endpoints:
            end = self._journal.stat().st_size if self._journal.exists() else 0
            for endpoint in self._endpoints:
                endpoint.wake(end)

    def close(self, flush_s: float) -> None:
        """Give what is pending up to `flush_s` seconds, then stop; the rest stays in the journal.

        An endpoint that is backing off gets one more try at once. Nothing writes the cursor after
        this has returned.
        """
        deadline = time.monotonic() + flush_s
        for endpoint in self._endpoints:
            endpoint.close(deadline)
        for endpoint in self._endpoints:
            if endpoint.thread.is_alive():
                endpoint.thread.join(max(0.0, deadline - time.monotonic()))
        self._cursors.close()
        for endpoint in self._endpoints:
            endpoint.stop()

    def pending(self) -> int:
        """Events still to be taken, over all endpoints. Reads the whole journal. Raises OSError,
        DamagedError.
        """
        end = self._journal.stat().st_size if self._journal.exists() else 0
        ends = [(one.channel, self._cursors.of(one.key)) for one in self._endpoints]
        ends = [(channel, cursor) for channel, cursor in ends if not cursor.disabled]
        tail, left = JournalTail(self._journal, 0), 0
        while (event := tail.next(end)) is not None:
            left += sum(event.seq > at.seq and is_told(channel, event) for channel, at in ends)
        return left

    def refusals(self) -> list[str]:
        """What a person should know of the endpoints, each once the same."""
        return [endpoint.refusal for endpoint in self._endpoints if endpoint.refusal]

    def status(self) -> dict[str, dict[str, Any]]:
        """Each endpoint by a short digest of its key: how far it is, and what its last try met."""
        return {
            digest.short(endpoint.key): {
                "seq": self._cursors.of(endpoint.key).seq,
                "disabled": self._cursors.of(endpoint.key).disabled,
                "problem": endpoint.problem,
            }
            for endpoint in self._endpoints
        }


def of(journal: Path, cursor: Path, known: Credentials, sharing: int = 1) -> Deliverer | None:
    """For the endpoints that the credentials name; None where they name none."""
    if not known.webhooks and not known.channels:
        return None
    return Deliverer(
        *(journal, cursor, known.webhooks, known.channels, known.language), sharing=sharing
    )


def flush(
    journal: Path,
    cursor: Path,
    webhooks: Sequence[Webhook],
    flush_s: float,
    *,
    chats: Sequence[answer.Endpoint] = (),
    language: str = "en",
) -> int:
    """Deliver what an agent left, for at most `flush_s` seconds; how many events are still left.

    Under the queue's lock, which the caller holds. Raises DamagedError.
    """
    deliverer = Deliverer(journal, cursor, webhooks, chats, language)
    deliverer.start()
    deliverer.close(flush_s)
    return deliverer.pending()


def leave_behind(release: Path, queue: str) -> None:
    """What a queue's agent could not deliver stays with a process, started as this one was by its
    door. None in a Slurm job, whose node is somebody else's when the job is over.

    """
    if "SLURM_JOB_ID" not in os.environ:
        start_behind("linger", release, queue)


def start_behind(verb: str, release: Path, queue: str) -> None:
    """Another verb of this program, by the door that the agent was started by, which outlives it.

    It holds nothing of ours: the agent's log is a lock, and its terminal goes away.
    """
    words = sys.orig_argv
    if "agent" not in words:
        return
    subprocess.Popen(
        [*words[: words.index("agent")], verb, "--release", str(release), "--queue", queue],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def linger(
    tier: DurablePaths, queue: str, secrets: Path, longest_s: float = DAY_S, *, sharing: int = 1
) -> int:
    """Deliver until nothing is left, for a day at most; how many events are left. It ends at once
    where somebody takes the queue, who then delivers from the same cursor, and where the
    credentials or the journal go. Raises DamagedError, InputError.
    """
    journal, until = tier.journal(queue), time.monotonic() + longest_s
    deliverer = of(journal, tier.delivered(queue), credentials.read(secrets), sharing)
    if deliverer is None:
        return 0
    deliverer.start()
    before, left = deliverer.status(), deliverer.pending()
    while left and time.monotonic() < until and secrets.exists() and journal.exists():
        if lock.is_held(tier.lock(queue)):
            break
        time.sleep(_LOOK_S)
        if (now := deliverer.status()) != before:
            before, left = now, deliverer.pending()
    deliverer.close(0)
    return left
