"""Events to one webhook: each as it is, with its id on every try, until it is gone (410)."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.files.journal_chain import Event
from onbox.machine.credentials import Webhook
from onbox.webhooks.endpoint import Cursors, Endpoint, Wait
from onbox.webhooks.journal_tail import JournalTail
from onbox.webhooks.post import Step, after, first_patience, is_public, next_patience, post


class ToWebhook(Endpoint):
    def __init__(self, webhook: Webhook, path: Path, cursors: Cursors, wait: Wait) -> None:
        super().__init__(digest.of_bytes(webhook.url.encode()), path, cursors, wait)
        self._webhook = webhook

    def _follow(self) -> None:
        cursor = self._cursors.of(self.key)
        if cursor.disabled:
            return
        tail = JournalTail(self._path, cursor.seq)
        while (event := self._next(tail)) and self._deliver(event):
            pass

    def _next(self, tail: JournalTail) -> Event | None:
        """Wait for the next public event; None when it is time to end."""
        while not self._stopped.is_set():
            # Cleared before the look, so that an event that comes in between is not slept over.
            self._woken.clear()
            event = tail.next(self._end)
            if event is not None and is_public(event):
                return event
            if event is None and self._closing.is_set():
                return None
            if event is None:
                self._woken.wait()
        return None

    def _deliver(self, event: Event) -> bool:
        """Try until the endpoint takes it; False where it gets no more."""
        patience = first_patience()
        while not self._stopped.is_set():
            answer = post(self._webhook, event)
            self.problem = answer.problem
            step = after(answer)
            if step is Step.DELIVERED:
                self._put(seq=event.seq)
                return True
            if step is Step.DISABLE:
                self._put(disabled=f"{answer.problem} at {timestamp.utc_now()}")
                return False
            patience, wait_s = next_patience(patience, answer.retry_after)
            if not self._back_off(wait_s):
                return False
        return False
