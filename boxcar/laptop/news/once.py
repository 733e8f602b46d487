"""What this machine tells a run's chats once: of money, which no agent knows.

Each piece of news has a key; which were taken lies in `.boxcar/told/RUN/money.json`. One that no
service took is tried again at a later look, not sooner than after ten minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping

from boxcar.laptop.common.home import Home
from boxcar.laptop.common.language import language_of
from boxcar.laptop.news import posting
from boxcar.laptop.project.from_environment import targets
from boxcar.laptop.project.notify.endpoints import BOX, LAPTOP
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared import timestamp
from boxcar.shared.channels.answer import WEBHOOK, Endpoint
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError
from boxcar.shared.sentence import in_language

# A file of no queue: names of queues have no capital.
_FILE = "MONEY"
_AGAIN_AFTER_S = 600.0


def tell_once(run: OpenRun, news: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Send those sentences whose key was not taken yet, in one message. Raises nothing that a
    service does: money is told on this machine as well.
    """
    if not news or not run.project.job.notify:
        return
    with contextlib.suppress(BoxcarError, OSError, ValueError, TypeError):
        path = Home(run.project.root).told(run.plan.run, _FILE)
        atomic.make_folder(path.parent)
        held = lock.try_hold(path.with_suffix(".lock"))
        if held is None:
            return  # another look is at it
        try:
            _tell(run, news, environ)
        finally:
            os.close(held)


def _tell(run: OpenRun, news: Mapping[str, str], environ: Mapping[str, str]) -> None:
    path = Home(run.project.root).told(run.plan.run, _FILE)
    kept = json.loads(path.read_bytes()) if path.exists() else {"told": {}, "tried_at": None}
    now, told, tried_at = timestamp.utc_now(), kept["told"], kept["tried_at"]
    new = {key: text for key, text in news.items() if key not in told}
    is_too_soon = tried_at and timestamp.seconds_between(tried_at, now) < _AGAIN_AFTER_S
    found = _endpoints(run, environ) if new else []
    if not found or is_too_soon:
        return
    language = run.project.job.language or language_of("", environ)
    said = "\n".join([run.plan.run, *(str(in_language(text, language)) for text in new.values())])
    posted = posting.post(run.project, found, said, environ)
    is_taken = any(one.verdict in posting.THROUGH for one in posted)
    kept = {
        "told": told | (dict.fromkeys(new, now) if is_taken else {}),
        "tried_at": None if is_taken else now,
    }
    atomic.write_whole(path, json.dumps(kept, indent=1).encode() + b"\n")


def _endpoints(run: OpenRun, environ: Mapping[str, str]) -> list[Endpoint]:
    """Chats and mail, whoever else sends to them, as far as their variables are set here: not
    webhooks, which take events, nor a dead-man's service.
    """
    return [
        one.endpoint
        for place in (LAPTOP, BOX)
        for one in targets(run.project.job, environ, place)
        if one.endpoint and one.channel != WEBHOOK and not one.every_s
    ]
