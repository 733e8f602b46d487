"""A message from this machine to one of its endpoints, whatever kind that is."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Mapping, Sequence

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.project.project import Project
from boxcar.shared.channels.answer import Endpoint, title
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.sentence import _
from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox

POST_TIMEOUT_S = 90.0
EMAIL, APPRISE = "email", "apprise"
SENT = "sent"
# What its sender need not send again.
THROUGH = (news_asks.TAKEN, SENT)
_TITLE = 120


def post(
    project: Project,
    endpoints: Sequence[Endpoint],
    text: str,
    environ: Mapping[str, str],
    event: Event | None = None,
) -> list[news_asks.Posted]:
    """What each said, in their order. Chats are posted by the agent's own program, run here.

    Raises TemporaryError and DamagedError where that does not answer.
    """
    chats = [one for one in endpoints if one.channel not in _HERE]
    told = iter(_by_agent(project, chats, text, environ, event) if chats else ())
    return [
        _HERE[one.channel](one, text) if one.channel in _HERE else next(told) for one in endpoints
    ]


def question(
    endpoints: Sequence[Endpoint], text: str, hook: str = "", event: Event | None = None
) -> news_asks.PostNews:
    to = tuple(news_asks.Address(one.channel, one.url, one.secret, one.to) for one in endpoints)
    spelled = news_asks.OneEvent(event.id, event.at, event.type, event.data) if event else None
    return news_asks.PostNews(to, text, hook, spelled)


def _by_agent(
    project: Project,
    chats: Sequence[Endpoint],
    text: str,
    environ: Mapping[str, str],
    event: Event | None,
) -> tuple[news_asks.Posted, ...]:
    plan = project.plan
    return ask_over_ssh.ask_here(
        sys.executable,
        Home(project.root),
        "the laptop",
        question(chats, text, event=event),
        RunOnBox(plan.run, plan.durable_dir, plan.boxes[0].data_dir),
        environ=environ,
        timeout_s=POST_TIMEOUT_S,
    ).posted


def by_apprise(endpoint: Endpoint, text: str) -> news_asks.Posted:
    """For services that have no channel here: `sent` where Apprise says so, and proven by nothing,
    since it says yes to any 200. Nothing is raised, and no secret is in it.
    """
    try:
        apprise = importlib.import_module("apprise")
    except ImportError:
        missing = _(
            "apprise is not installed here; type: {apprise}", apprise=home.install_line(APPRISE)
        )
        return news_asks.Posted(news_asks.REFUSED, missing)
    # It shows whole URLs in what it logs.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    sender = apprise.Apprise()
    if not sender.add(endpoint.url):
        return news_asks.Posted(news_asks.REFUSED, _("apprise does not know this address"))
    try:
        is_sent = sender.notify(body=text, title=title(text, _TITLE))
    except Exception as error:
        # A plugin may raise anything, with the address in its words.
        return news_asks.Posted(news_asks.LATER, type(error).__name__)
    return (
        news_asks.Posted(SENT, _("sent, not confirmed"))
        if is_sent
        else news_asks.Posted(news_asks.LATER, "not sent")
    )


def _by_email(endpoint: Endpoint, text: str) -> news_asks.Posted:
    from boxcar.laptop.news.by_email import by_email  # late: smtplib is slow to import

    return by_email(endpoint, text)


# What no box sends.
_HERE = {EMAIL: _by_email, APPRISE: by_apprise}
