"""One message to each endpoint, once, and what its service said. Nothing of it is kept here."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from boxcar.shared import timestamp
from boxcar.shared.channels import known
from boxcar.shared.channels.answer import (
    WEBHOOK,
    Answer,
    Endpoint,
    Later,
    Refused,
    Request,
    Taken,
    is_web_page,
    not_now,
)
from boxcar.shared.errors import InputError
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.wire import news_asks, webhook_secret
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import interpreter
from onbox.machine.credentials import Webhook
from onbox.webhooks import chat_post, post

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
        posted = pool.map(lambda one: _post(one, question.text, event), endpoints)
        return news_asks.NewsPosted(tuple(map(_told, posted)))


def _refuse_unknown(endpoint: Endpoint) -> None:
    if endpoint.channel == WEBHOOK and not webhook_secret.is_secret(endpoint.secret):
        raise InputError("a webhook's secret is whsec_ and base64")
    if endpoint.channel != WEBHOOK and endpoint.channel not in known.NAMES:
        raise InputError(f"{endpoint.channel!r} is no channel of this agent")


def _post(endpoint: Endpoint, text: str, event: Event) -> chat_post.Posted:
    if endpoint.channel != WEBHOOK:
        return chat_post.post_once(endpoint, text)
    return chat_post.send_once(endpoint, lambda: _signed(endpoint, event), taken)


def _event(question: news_asks.PostNews, run: RunOnBox) -> Event:
    if one := question.event:
        return Event(1, one.id, one.at, one.type, one.data)
    data = {"run": run.run, "text": question.text}
    return Event(1, f"evt_{uuid.uuid4().hex}", timestamp.utc_now(), TEST_TYPE, data)


def _signed(endpoint: Endpoint, event: Event) -> Request:
    return post.request(Webhook(endpoint.url, endpoint.secret), event)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """Any 2xx took the event, as it does for the deliverer."""
    if found := not_now(status, headers, body):
        return found
    if is_web_page(body):
        return Later(f"answered {status} with a web page: a captive portal?")
    return Taken()


def _told(posted: chat_post.Posted) -> news_asks.Posted:
    verdict = {Taken: news_asks.TAKEN, Later: news_asks.LATER, Refused: news_asks.REFUSED}[
        type(posted.answer)
    ]
    return news_asks.Posted(verdict, posted.said, posted.status, _seconds(posted.ahead_s))


def _seconds(ahead_s: float | None) -> int | None:
    """A Date has no fractions of them."""
    return None if ahead_s is None else round(ahead_s)
