"""One message to each endpoint, once, and what its service said. Nothing of it is kept here."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from boxcar.shared import timestamp
from boxcar.shared.channels import dead_man, known
from boxcar.shared.channels.answer import WEBHOOK, Endpoint, Later, Refused, Taken
from boxcar.shared.errors import InputError
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.sentence import _
from boxcar.shared.wire import news_asks, webhook_secret
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import interpreter
from onbox.webhooks import post

# In no journal: a receiver may know by it that somebody only tries.
TEST_TYPE = "notify.test"
_SIDE_BY_SIDE = 8


def answer(question: news_asks.PostNews, run: RunOnBox) -> news_asks.NewsPosted:
    """Post to all side by side. Raises InputError for an endpoint of no known kind."""
    endpoints = [Endpoint(one.channel, one.url, one.secret, one.to) for one in question.endpoints]
    for endpoint in endpoints:
        _refuse_unknown(endpoint)
    if question.hook:
        os.environ.update(interpreter.proxies(question.hook))
    event = _event(question, run)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        posted = pool.map(
            lambda one: post.post_once(one, event if one.channel == WEBHOOK else question.text),
            endpoints,
        )
        return news_asks.NewsPosted(tuple(map(_told, posted)))


def _refuse_unknown(endpoint: Endpoint) -> None:
    if endpoint.channel == WEBHOOK and not webhook_secret.is_secret(endpoint.secret):
        raise InputError(_("a webhook's secret is whsec_ and base64"))
    others = (WEBHOOK, dead_man.HEARTBEAT)
    if endpoint.channel not in others and endpoint.channel not in known.NAMES:
        raise InputError(_("this agent has no channel {channel!r}", channel=endpoint.channel))


def _event(question: news_asks.PostNews, run: RunOnBox) -> Event:
    if one := question.event:
        return Event(1, one.id, one.at, one.type, one.data)
    data = {"run": run.run, "text": question.text}
    return Event(1, f"evt_{uuid.uuid4().hex}", timestamp.utc_now(), TEST_TYPE, data)


def _told(posted: post.Posted) -> news_asks.Posted:
    verdict = {Taken: news_asks.TAKEN, Later: news_asks.LATER, Refused: news_asks.REFUSED}[
        type(posted.answer)
    ]
    said = posted.answer.why if isinstance(posted.answer, Refused) else posted.said
    # A Date has no fractions of seconds.
    ahead_s = None if posted.ahead_s is None else round(posted.ahead_s)
    return news_asks.Posted(verdict, said, posted.status, ahead_s)
