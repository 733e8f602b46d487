"""Which chat services there are, and which service a host belongs to."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from boxcar.shared.channels.answer import Answer, Endpoint, Request

NAMES = (
    "feishu",
    "lark",
    "dingtalk",
    "wecom",
    "serverchan",
    "bark",
    "ntfy",
    "telegram",
    "slack",
    "discord",
    "autodl",
)
# A host with the beginning of its path.
_HOSTS = {
    "open.feishu.cn/": "feishu",
    "open.larksuite.com/": "lark",
    "oapi.dingtalk.com/": "dingtalk",
    "api.dingtalk.com/": "dingtalk",
    "qyapi.weixin.qq.com/": "wecom",
    "sctapi.ftqq.com/": "serverchan",
    "sc.ftqq.com/": "serverchan",
    "push.ft07.com/": "serverchan",
    "api.day.app/": "bark",
    "ntfy.sh/": "ntfy",
    "api.telegram.org/": "telegram",
    "hooks.slack.com/": "slack",
    "discord.com/api/": "discord",
    "discordapp.com/api/": "discord",
    "www.autodl.com/": "autodl",
    "autodl.com/": "autodl",
}
# Where a service has one address for all.
URLS = {
    "telegram": "https://api.telegram.org",
    "autodl": "https://www.autodl.com/api/v1/wechat/message/send",
}
# What job.yaml says of each, as it is to be written.
LINES = {
    **{name: f'{name}: {{url: "env:{name.upper()}_URL"}}' for name in NAMES},
    "telegram": 'telegram: {token: "env:TELEGRAM_TOKEN", chat: "env:TELEGRAM_CHAT"}',
    "autodl": 'autodl: {token: "env:AUTODL_TOKEN"}',
}


class Channel(Protocol):
    """What each module of a service has. `RATE`: at most so many messages in so many seconds."""

    RATE: tuple[tuple[int, float], ...]

    def request(self, endpoint: Endpoint, text: str, now_s: float) -> Request: ...

    def taken(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer: ...


def channel(name: str) -> Channel:
    """The module of a service. Raises KeyError for one that there is not."""
    if name not in NAMES:
        raise KeyError(name)
    # Late and by name: a box compiles each module that it imports, and most runs use one.
    module: Channel = importlib.import_module(f"boxcar.shared.channels.{name}")
    return module


def service_of(url: str) -> str | None:
    """Whose address this is; None for one of nobody that is known here."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return None
    path = f"{parts.path}/".lower()
    for known, name in _HOSTS.items():
        known_host, _, begin = known.partition("/")
        is_host = host == known_host or host.endswith(f".{known_host}")
        if is_host and path.startswith(f"/{begin}"):
            return name
    return None
