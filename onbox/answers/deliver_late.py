"""The webhooks that a queue's agent could not deliver any more, sent after it has ended."""

from __future__ import annotations

import os
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import release
from boxcar.shared.sentence import _
from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import credentials, place
from onbox.slurm import ownership
from onbox.webhooks import deliver

DELIVER_S = 60.0


def answer(question: news_asks.Deliver, run: RunOnBox) -> news_asks.Delivered:
    """Send what is due of the queue, with the endpoints that the credentials name."""
    folder, secrets = run.tier.release(question.digest), paths.on_box(question.credentials)
    return news_asks.Delivered(deliver_late(folder, question.queue, secrets))


def deliver_late(folder: Path, queue: str, credentials_path: Path | None) -> int:
    """How many events are still due after DELIVER_S at most. `folder` is a release's.

    Raises TemporaryError and InputError.
    """
    made = release.read_plan(folder)
    place.box_of(made, queue)
    tier = place.tier(made)
    held = ownership.hold(tier, queue)
    if held is None:
        raise TemporaryError(_("{queue}: its agent is running and delivers by itself", queue=queue))
    try:
        known = (
            credentials.read(credentials_path) if credentials_path else credentials.Credentials()
        )
        return deliver.flush(
            *(tier.journal(queue), tier.delivered(queue), known.webhooks, DELIVER_S),
            chats=known.channels,
            language=known.language,
        )
    finally:
        os.close(held)
