"""Sends the journal's events to webhooks and chats: at least once, in order.

The journal is the outbox and `delivered/<queue>.json` a cursor over it for each endpoint. The
cursor moves only after an endpoint took an event, so an agent that was killed in between sends it
again (a webhook with the same id). One thread for each endpoint: one that is
down holds up no other. Whoever uses this holds the
lock of the cursor (`delivered/<queue>.lock`); it is not taken here.

A URL is as secret as its secret: neither gets into the cursor, a log, an error or a repr.

Not covered: a name server that hangs, and an answer that drips in byte by byte. Both hold up their
own endpoint only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.channels.answer import Endpoint as Chat
from boxcar.shared.disk import atomic, digest
from onbox.machine.credentials import Credentials, Webhook
from onbox.webhooks.endpoint import Cursors, Endpoint, Wait
from onbox.webhooks.journal_tail import Backlog, count_lines
from onbox.webhooks.to_chat import ToChat
from onbox.webhooks.to_webhook import ToWebhook


class Deliverer:
    """The endpoints of one queue, as threads of the agent. Without any it does nothing."""

    def __init__(
        self,
        journal: Path,
        cursor: Path,
        webhooks: Sequence[Webhook],
        chats: Sequence[Chat] = (),
        language: str = "en",
        *,
        sharing: int = 1,
        wait: Wait = threading.Event.wait,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`sharing`: how many queues of the run send to the same robots, each its part."""
        self._journal = journal
        self._cursors = cursors = Cursors(cursor)
        self._backlog: Backlog | None = None
        self._endpoints: list[Endpoint] = [
            *(ToWebhook(one, journal, cursors, wait) for one in webhooks),
            *(
                ToChat(
                    *(one, journal, cursors, wait), language=language, sharing=sharing, clock=clock
                )
                for one in chats
            ),
        ]

    def start(self) -> None:
        """Under the cursor's lock. Raises DamagedError where the cursor cannot be read, OSError."""
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
        """Events still to be taken, over all endpoints. Reads what the journal got since the last
        time. Raises OSError, DamagedError.
        """
        channels = {endpoint.key: endpoint.channel for endpoint in self._endpoints}
        self._backlog = self._backlog or Backlog(self._journal, channels)
        return self._backlog.left({key: self._cursors.of(key) for key in channels})

    def reached(self) -> list[tuple[int, str | None]]:
        """How far each endpoint is. Costs nothing."""
        cursors = [self._cursors.of(endpoint.key) for endpoint in self._endpoints]
        return [(cursor.seq, cursor.disabled) for cursor in cursors]

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
    chats: Sequence[Chat] = (),
    language: str = "en",
) -> int:
    """Deliver what an agent left, for at most `flush_s` seconds; how many events are still left.

    Under the cursor's lock, which the caller holds. Raises DamagedError.
    """
    deliverer = Deliverer(journal, cursor, webhooks, chats, language)
    deliverer.start()
    deliverer.close(flush_s)
    return deliverer.pending()
