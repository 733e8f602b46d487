"""A message from this machine to one of its endpoints, whatever kind that is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from boxcar.laptop.boxes import ask_here
from boxcar.laptop.common.home import Home
from boxcar.laptop.news import by_apprise, by_email
from boxcar.laptop.project.project import Project
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox

POST_TIMEOUT_S = 90.0
_HERE = {by_email.CHANNEL: by_email.post, by_apprise.CHANNEL: by_apprise.post}
# What its sender need not send again.
THROUGH = (news_asks.TAKEN, by_apprise.SENT)


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
    return ask_here.ask(
        ask_here.command(sys.executable, ask_here.agents_file(Home(project.root))),
        "the laptop",
        question(chats, text, event=event),
        RunOnBox(plan.run, plan.durable_dir, plan.boxes[0].data_dir),
        environ=environ,
        timeout_s=POST_TIMEOUT_S,
    ).posted
