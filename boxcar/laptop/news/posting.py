"""A message from this machine to one of its endpoints, whatever kind that is."""

from __future__ import annotations

import importlib
import logging
import smtplib
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import parse_qs, unquote, urlsplit

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.project.project import Project
from boxcar.shared.channels.answer import Endpoint, title, without_secrets
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.sentence import _
from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox

POST_TIMEOUT_S = 90.0
MAIL_TIMEOUT_S = 20.0
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


def by_email(endpoint: Endpoint, text: str) -> news_asks.Posted:
    """Taken when the server says 250 to all of it. No secret is in what it said, and nothing is
    raised.
    """
    try:
        with _session(endpoint) as server:
            mail = message(endpoint, text)
            refused = server.send_message(mail, mail["From"], [endpoint.to])
    except smtplib.SMTPResponseException as error:
        said = _line(error.smtp_code, error.smtp_error)
        return _posted(endpoint, _verdict(error.smtp_code), said, error.smtp_code)
    except smtplib.SMTPRecipientsRefused as error:
        code, told = next(iter(error.recipients.values()))
        return _posted(endpoint, _verdict(code), _line(code, told), code)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        # Its type alone: its words may repeat an address.
        return news_asks.Posted(news_asks.LATER, type(error).__name__)
    assert not refused, "of one recipient none is refused where nothing was raised"
    return news_asks.Posted(news_asks.TAKEN, "250", 250)


def message(endpoint: Endpoint, text: str) -> EmailMessage:
    """The first line is the subject."""
    mail = EmailMessage()
    mail["Subject"] = title(text, _TITLE)
    mail["From"] = parse_qs(urlsplit(endpoint.url).query)["sender"][0]
    mail["To"] = endpoint.to
    mail["Date"] = formatdate()
    mail["Message-ID"] = make_msgid(domain="boxcar.invalid")
    mail.set_content(text.encode("utf-8", "replace").decode())
    return mail


@contextmanager
def _session(endpoint: Endpoint) -> Iterator[smtplib.SMTP]:
    parts = urlsplit(endpoint.url)
    host, port, context = parts.hostname or "", parts.port or 0, ssl.create_default_context()
    if parts.scheme == "ssl":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=MAIL_TIMEOUT_S, context=context)
    else:
        server = smtplib.SMTP(host, port, timeout=MAIL_TIMEOUT_S)
    with server:
        if parts.scheme == "starttls":
            server.starttls(context=context)
        if endpoint.secret:
            server.login(unquote(parts.username or ""), endpoint.secret)
        yield server


def _verdict(code: int) -> str:
    """4xx is for now, 5xx is a no."""
    return news_asks.LATER if code < 500 else news_asks.REFUSED


def _posted(endpoint: Endpoint, verdict: str, said: str, code: int) -> news_asks.Posted:
    return news_asks.Posted(verdict, without_secrets(said, endpoint), code)


def _line(code: int, told: bytes | str) -> str:
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else told
    shown = "".join(c if c.isprintable() else " " for c in text)
    return f"{code} {' '.join(shown.split())}"


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


# What no box sends.
_HERE = {EMAIL: by_email, APPRISE: by_apprise}
