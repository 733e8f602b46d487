"""Whether boxes elsewhere can reach the address that webhooks are sent to. Pure.

On a rented box 127.0.0.1 is the box: what is sent there reaches nobody, unless a port of the box
leads here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from boxcar.laptop.webhooks.kept_address import Address
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import Command, Message


def warnings(
    endpoints: Sequence[Mapping[str, str]],
    boxes: Sequence[str],
    kept: Address,
) -> Iterator[Message]:
    """Of boxes over ssh. `kept` is where `listen` is reached through some of them.

    Nothing of a URL but host and port is said: the rest may be a secret.
    """
    for endpoint in endpoints:
        url = urlsplit(endpoint["url"])
        host = url.hostname or ""
        if _is_loopback(host):
            left = [box for box in boxes if url.port != kept.port or box not in kept.through]
            kind = "loopback"
        else:
            left = list(boxes) if _is_private(host) else []
            kind = "private"
        if left:
            address = host if url.port is None else f"{host}:{url.port}"
            text = Sentence(f"listen.{kind}", address=address, boxes=", ".join(left))
            yield Message(text, _listen(boxes))


def _listen(boxes: Sequence[str]) -> Command:
    return Command("listen", tuple(word for box in boxes for word in ("--through", box)))


def _is_loopback(host: str) -> bool:
    ip = _ip(host)
    if ip is None:
        return host == "localhost" or host.endswith(".localhost")
    return ip.is_loopback or ip.is_unspecified


def _is_private(host: str) -> bool:
    ip = _ip(host)
    return "." not in host or host.endswith(".local") if ip is None else ip.is_private


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
