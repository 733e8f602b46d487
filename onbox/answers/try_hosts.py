"""Whether this box reaches the hosts that news goes to: a connection and TLS in it, and no message.

As a message would go: by the proxies of the box, and with the certificates that it is sent with.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from boxcar.shared.wire import news_asks
from boxcar.shared.wire.news_asks import Host, HostTried
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import interpreter
from onbox.webhooks.post import CONNECT_S

# For all of them together: a name server that hangs knows no limit of its own.
WITHIN_S = 12.0


def answer(question: news_asks.TryHosts, run: RunOnBox) -> news_asks.HostsTried:
    if question.hook:
        os.environ.update(interpreter.proxies(question.hook))
    return news_asks.HostsTried(side_by_side(question.hosts))


def side_by_side(hosts: Sequence[Host]) -> tuple[HostTried, ...]:
    """In their order; one that has said nothing by the end is NO_ANSWER."""
    found = [HostTried(news_asks.NO_ANSWER)] * len(hosts)

    def one(number: int) -> None:
        found[number] = HostTried(problem(hosts[number]))

    threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(len(hosts))]
    until = time.monotonic() + WITHIN_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return tuple(found)


def problem(host: Host) -> str | None:
    """Why it is not reached; None where it is."""
    proxy = None
    try:
        proxy = _proxy(host)
        with contextlib.closing(_connection(host, proxy)) as connection:
            connection.connect()
    except Exception as error:
        # Whatever it is, the host is not reached; a proxy's address may hold a password.
        told = _kind(error)
        return news_asks.BY_PROXY if proxy and told != news_asks.WRONG_TLS else told
    return None


def _kind(error: Exception) -> str:
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (socket.gaierror, news_asks.NO_NAME),
        (ConnectionRefusedError, news_asks.CLOSED),
        (TimeoutError, news_asks.NO_ANSWER),
        (ssl.SSLEOFError, news_asks.CUT),
        (ssl.SSLError, news_asks.WRONG_TLS),
        (ConnectionError, news_asks.CUT),
    )
    return next((word for kind, word in kinds if isinstance(error, kind)), news_asks.NO_WAY)


def _proxy(host: Host) -> SplitResult | None:
    """The one that a message would go by."""
    from requests.utils import get_environ_proxies, select_proxy

    name = f"[{host.name}]" if ":" in host.name else host.name
    url = f"{'https' if host.is_tls else 'http'}://{name}:{host.port}/"
    found = select_proxy(url, get_environ_proxies(url))
    return urlsplit(found if "//" in found else f"//{found}") if found else None


def _connection(host: Host, proxy: SplitResult | None) -> HTTPConnection:
    where = (proxy.hostname or "", proxy.port or 80) if proxy else (host.name, host.port)
    if not host.is_tls:
        return HTTPConnection(*where, timeout=CONNECT_S)
    secured = HTTPSConnection(*where, timeout=CONNECT_S, context=_certificates())
    if proxy:
        secured.set_tunnel(host.name, host.port, _login(proxy))
    return secured


def _login(proxy: SplitResult) -> dict[str, str]:
    from urllib3.util import make_headers

    if proxy.username is None:
        return {}
    return make_headers(
        proxy_basic_auth=f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    )


def _certificates() -> ssl.SSLContext:
    """Those that `requests` verifies with."""
    from requests.utils import DEFAULT_CA_BUNDLE_PATH

    named = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    path = named or DEFAULT_CA_BUNDLE_PATH
    if Path(path).is_dir():
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)
