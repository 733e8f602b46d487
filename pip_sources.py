"""Where pip would install from, and which of these places answer.

Asked before pip is: it tries a dead index for minutes and says nothing meanwhile. Standard library
only, and only what Python 3.7 can read: bootstrap.py says which Python it needs.
"""

from __future__ import annotations

import ast
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

DEFAULT_INDEX = "https://pypi.org/simple"
PATIENCE_S = 6.0
# What counts comes first: a variable PIP_..., the command's own section, all commands.
_SECTIONS = (":env:", "install", "global")
_PORTS = {"http": 80, "https": 443}


class Source(NamedTuple):
    """An index, and who says so."""

    url: str
    said_by: str

    @property
    def shown(self) -> str:
        return shown(self.url)


class Settings(NamedTuple):
    """Of pip as it is set up here. The first of `sources` is its index, the others are extra."""

    sources: list[Source]
    proxy: str | None
    has_links: bool


def settings(python: str) -> Settings:
    """What `pip config list` and pip's own variables say."""
    words = [python, "-m", "pip", "config", "list"]
    said = subprocess.run(words, capture_output=True, check=False)
    return _read(_values(said.stdout.decode("utf-8", "replace")))


def silent(sources: list[Source], proxy: str | None = None) -> dict[str, str]:
    """Why each one does not answer, by its URL, within PATIENCE_S for all of them."""
    reasons: dict[str, str | None] = {}

    def look(url: str) -> None:
        reasons[url] = _why_silent(url, proxy)

    looks = [threading.Thread(target=look, args=(each.url,), daemon=True) for each in sources]
    for thread in looks:
        thread.start()
    until = time.monotonic() + PATIENCE_S + 1
    for thread in looks:
        # A name server that does not answer keeps a thread longer than its own limit.
        thread.join(max(0.0, until - time.monotonic()))
    slow = f"no answer within {PATIENCE_S:g} s"
    found = {each.url: reasons.get(each.url, slow) for each in sources}
    return {url: why for url, why in found.items() if why}


def shown(url: str) -> str:
    """Without the name and password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _values(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        try:
            found[name] = str(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
    return found


def _read(values: dict[str, str]) -> Settings:
    def first(name: str) -> Source | None:
        for section in _SECTIONS:
            value = values.get(f"{section}.{name}", "").strip()
            if value:
                variable = "PIP_" + name.upper().replace("-", "_")
                return Source(value, variable if section == ":env:" else "pip config")
        return None

    extra = first("extra-index-url") or Source("", "")
    sources = [first("index-url") or Source(DEFAULT_INDEX, "")]
    sources += [Source(url, extra.said_by) for url in extra.url.split()]
    none = first("no-index")
    is_none = none is not None and none.url.lower() in ("1", "true", "yes", "on")
    proxy = first("proxy")
    links = first("find-links") is not None
    return Settings([] if is_none else sources, proxy.url if proxy else None, links)


def _why_silent(url: str, proxy: str | None) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        is_there = parts.scheme != "file" or Path(urllib.request.url2pathname(parts.path)).exists()
        return None if is_there else "there is no such folder"
    proxy = proxy or _proxy_of(parts.scheme, parts.hostname or "")
    if proxy:
        why = _why_no_connection(proxy)
        if why:
            return f"the proxy {shown(proxy)} does not answer ({why})"
        if proxy.startswith("socks"):
            return None  # which Python's own client does not speak
    return _why_no_answer(shown(url).rstrip("/") + "/pip/", parts.scheme, proxy)


def _proxy_of(scheme: str, host: str) -> str | None:
    is_bypassed = urllib.request.proxy_bypass(host)
    return None if is_bypassed else urllib.request.getproxies().get(scheme)


def _why_no_connection(proxy: str) -> str | None:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    try:
        place = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 1080))
        socket.create_connection(place, PATIENCE_S).close()
    except (OSError, ValueError) as error:
        return _reason(error)
    return None


def _why_no_answer(url: str, scheme: str, proxy: str | None) -> str | None:
    """Any answer but that of a broken server is one: an index need not have every package."""
    handler = urllib.request.ProxyHandler({scheme: proxy} if proxy else {})
    try:
        urllib.request.build_opener(handler).open(url, timeout=PATIENCE_S).close()
    except urllib.error.HTTPError as error:
        return None if error.code < 500 else f"it answers {error.code} {error.reason}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        # pip brings certificates of its own.
        return None if isinstance(reason, ssl.SSLError) else _reason(reason)
    return None


def _reason(error: object) -> str:
    if isinstance(error, (socket.timeout, TimeoutError)):
        return f"no answer within {PATIENCE_S:g} s"
    return str(getattr(error, "strerror", None) or error).lower()
