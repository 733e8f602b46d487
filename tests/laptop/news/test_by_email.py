"""E-mail against a server on 127.0.0.1 that speaks SMTP: taken is its 250 to the whole message."""

from __future__ import annotations

import email
import email.policy
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from smtp_server import MailServer

from boxcar.laptop.news.by_email import by_email
from boxcar.shared.channels.answer import Endpoint

TEXT = "Boxcar 消融: seg_explode failed (M2)\n.a line that begins with a dot\nleft: 26 of 36 cells"


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.end()


def endpoint(server: MailServer, security: str = "none", password: str = "") -> Endpoint:
    url = f"{security}://me%40example.org@127.0.0.1:{server.port}/?sender=me%40example.org"
    return Endpoint("email", url, password, "you@example.org")


def test_a_message_is_taken_when_the_server_says_250_to_all_of_it(server: MailServer) -> None:
    told = by_email(endpoint(server), TEXT)
    assert (told.verdict, told.status) == ("taken", 250)
    [(sender, to, content)] = server.mails
    assert (sender, to) == ("me@example.org", "you@example.org")
    mail = email.message_from_string(content, policy=email.policy.default)
    assert mail["Subject"] == "Boxcar 消融: seg_explode failed (M2)"
    assert mail["From"] == "me@example.org"


@pytest.mark.parametrize(
    ("after", "verdict"), [("451 4.3.0 try later", "later"), ("554 5.7.1 spam", "refused")]
)
def test_a_server_that_says_no_after_the_data_did_not_take_it(
    after: str, verdict: str, server: MailServer
) -> None:
    server.after_data = after
    told = by_email(endpoint(server), TEXT)
    assert (told.verdict, told.said) == (verdict, after)
    assert server.mails == []


@pytest.mark.parametrize(("code", "verdict"), [(450, "later"), (550, "refused")])
def test_a_recipient_that_is_refused(code: int, verdict: str, server: MailServer) -> None:
    server.rcpt = f"{code} no mailbox for you@example.org"
    told = by_email(endpoint(server), TEXT)
    assert (told.verdict, told.status) == (verdict, code)
    assert "you@example.org" not in told.said


def test_a_wrong_password_is_refused_and_not_repeated(server: MailServer) -> None:
    server.password = "the-right-one"
    told = by_email(endpoint(server, password="hunter2-hunter2"), TEXT)
    assert told.verdict == "refused"
    assert told.said.startswith("535 5.7.8 not accepted")
    assert "hunter2" not in told.said
    told = by_email(endpoint(server, password="the-right-one"), TEXT)
    assert told.verdict == "taken"


def test_no_server_and_a_hang_up_took_nothing(server: MailServer) -> None:
    away = Endpoint("email", "none://me@127.0.0.1:1/?sender=me%40b", "", "you@example.org")
    assert by_email(away, TEXT).said == "ConnectionRefusedError"
    server.after_data = ""
    assert by_email(endpoint(server), TEXT).verdict != "taken"


def test_without_starttls_no_password_is_sent_in_the_clear(server: MailServer) -> None:
    server.password = "the-right-one"
    told = by_email(endpoint(server, "starttls", "the-right-one"), TEXT)
    assert told.verdict == "later"
    assert not [line for line in server.said if line.startswith("AUTH")]


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl makes a certificate here")
def test_starttls_encrypts_and_a_certificate_that_nobody_trusts_is_not_believed(
    server: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x"
    words += " -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.password = "the-right-one"
    told = by_email(endpoint(server, "starttls", "the-right-one"), TEXT)
    assert (told.verdict, told.said) == ("later", "SSLCertVerificationError")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    assert by_email(endpoint(server, "starttls", "the-right-one"), TEXT).verdict == "taken"
    assert server.was_encrypted == [True]


def test_a_line_feed_in_an_address_makes_no_header(server: MailServer) -> None:
    sly = Endpoint("email", endpoint(server).url, "", "you@example.org\nBcc: all@example.org")
    assert by_email(sly, TEXT).verdict != "taken"
    assert server.mails == []
