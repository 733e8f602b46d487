"""One message by Apprise, for services that have no channel here: sent, and proven by nothing.

Apprise says yes to any 200, also where the service says no in the body.
"""

from __future__ import annotations

import importlib
import logging

from boxcar.laptop.common import install_line
from boxcar.shared.channels import words
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.wire import news_asks

CHANNEL = "apprise"
SENT = "sent"
_TITLE = 120


def post(endpoint: Endpoint, text: str) -> news_asks.Posted:
    """`sent` where Apprise says so. Nothing is raised, and no secret is in it."""
    try:
        apprise = importlib.import_module("apprise")
    except ImportError:
        missing = f"apprise is not installed here; type: {install_line.of(CHANNEL)}"
        return news_asks.Posted(news_asks.REFUSED, missing)
    # It shows whole URLs in what it logs.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    sender = apprise.Apprise()
    if not sender.add(endpoint.url):
        return news_asks.Posted(news_asks.REFUSED, "apprise knows no such address")
    try:
        is_sent = sender.notify(body=text, title=words.title(text, _TITLE))
    except Exception as error:
        # A plugin may raise anything, with the address in its words.
        return news_asks.Posted(news_asks.LATER, type(error).__name__)
    return (
        news_asks.Posted(SENT, "sent, not proven")
        if is_sent
        else news_asks.Posted(news_asks.LATER, "not sent")
    )
