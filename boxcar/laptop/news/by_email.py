"""A message by mail, through the mail server that the project names."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import parse_qs, unquote, urlsplit

from boxcar.shared.channels.answer import Endpoint, title, without_secrets
from boxcar.shared.wire import news_asks

MAIL_TIMEOUT_S = 20.0
SUBJECT_LENGTH = 120


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
    mail["Subject"] = title(text, SUBJECT_LENGTH)
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
