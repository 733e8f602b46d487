"""Hosts tried from a box: real sockets on 127.0.0.1 that take, refuse, hang, cut and lie."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import try_hosts

RUN = RunOnBox("tiny", "/tier", "~/data")
Meet = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith(("_proxy", "ca_bundle")):
            monkeypatch.delenv(name)


@contextlib.contextmanager
def listening(meet: Meet) -> Iterator[int]:
    """A port of 127.0.0.1 where each caller is met so."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = server.accept()
                with caller, contextlib.suppress(OSError):
                    caller.settimeout(LIMIT_S)
                    meet(caller)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(LIMIT_S)


def told(port: int, *, is_tls: bool = False, name: str = "127.0.0.1") -> str | None:
    question = news_asks.TryHosts((news_asks.Host(name, port, is_tls),), "")
    [found] = try_hosts.answer(question, RUN).tried
    return found.problem


def test_a_host_that_takes_a_connection_is_reached_and_hears_nothing() -> None:
    heard: list[bytes] = []
    gone = threading.Event()

    def hear(caller: socket.socket) -> None:
        heard.append(caller.recv(1))
        gone.set()

    with listening(hear) as port:
        assert told(port) is None
        assert gone.wait(LIMIT_S)
    assert heard == [b""]


def test_a_closed_port_and_a_name_that_nobody_knows_are_told_apart() -> None:
    assert told(1) == news_asks.CLOSED
    assert told(443, name="nobody.invalid") in (news_asks.NO_NAME, news_asks.NO_WAY)


def test_tls_that_hangs_is_cut_or_is_no_tls_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_hosts, "CONNECT_S", 0.1)
    done = threading.Event()
    with listening(lambda _: done.wait(LIMIT_S) and None) as port:
        assert told(port, is_tls=True) == news_asks.NO_ANSWER
        done.set()
    with listening(lambda caller: caller.recv(1) and None) as port:
        monkeypatch.setattr(try_hosts, "CONNECT_S", LIMIT_S)
        assert told(port, is_tls=True) == news_asks.CUT
    with listening(lambda caller: caller.sendall(b"HTTP/1.1 400 no\r\n\r\n")) as port:
        assert told(port, is_tls=True) == news_asks.WRONG_TLS


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Of 127.0.0.1, signed by nobody but itself."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("there is no openssl program to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = "req -x509 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -keyout"
    subprocess.run(
        [openssl, *words.split(), *curve.split(), str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
    )
    return key, cert


def test_whose_tls_it_is_decides_as_it_does_for_a_message(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, cert = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def shake(caller: socket.socket) -> None:
        with context.wrap_socket(caller, server_side=True) as secured:
            secured.recv(1)

    with listening(shake) as port:
        assert told(port, is_tls=True) == news_asks.WRONG_TLS
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
        assert told(port, is_tls=True) is None


def test_it_goes_by_the_proxy_of_the_hook_as_a_message_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    def refuse(caller: socket.socket) -> None:
        asked.append(caller.recv(4096))
        caller.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    with listening(refuse) as port:
        proxy = f"http://me:pass%40word@127.0.0.1:{port}"
        monkeypatch.setattr(try_hosts.interpreter, "proxies", lambda _: {"https_proxy": proxy})
        monkeypatch.setenv("https_proxy", "")
        question = news_asks.TryHosts((news_asks.Host("chat.invalid", 443, is_tls=True),), "a hook")
        assert try_hosts.answer(question, RUN).tried == (news_asks.HostTried(news_asks.BY_PROXY),)
    [words] = asked
    assert words.startswith(b"CONNECT chat.invalid:443 ")
    assert b"roxy-authorization: Basic bWU6cGFzc0B3b3Jk" in words.replace(b"Proxy-A", b"proxy-a")


def test_a_name_server_that_hangs_holds_up_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(try_hosts, "WITHIN_S", 0.2)

    def problem(host: news_asks.Host) -> str | None:
        return news_asks.NO_WAY if host.name == "slow" and done.wait(LIMIT_S) else None

    monkeypatch.setattr(try_hosts, "problem", problem)
    hosts = (news_asks.Host("slow", 1, is_tls=False), news_asks.Host("fast", 1, is_tls=False))
    found = try_hosts.side_by_side(hosts)
    done.set()
    assert found == (news_asks.HostTried(news_asks.NO_ANSWER), news_asks.HostTried())
