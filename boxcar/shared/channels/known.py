"""The chat services that are known: where each is, what it is sent, and how it says it took it.

Some answer 200 to everything and say in the body what came of it, under `key`: only `good` there is
a yes. Of the others a 2xx is one, unless the body says no. Doubt is never a yes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from boxcar.shared.channels import answer
from boxcar.shared.channels.answer import Answer, Endpoint, Request
from boxcar.shared.record import dataclass

Rate = tuple[tuple[int, float], ...]
# Of the text, its title, the endpoint and the time in seconds.
Body = Callable[[str, str, Endpoint, float], dict[str, Any]]


def _as_it_is(text: str) -> str:
    return text


def _its_url(endpoint: Endpoint, now_s: float) -> str:
    return endpoint.url


@dataclass(frozen=True)
class Channel:
    """One service. `hosts` may go on with the beginning of a path; `rate`: at most so many messages
    in so many seconds; `quiet` makes a text one that calls nobody; `busy` are the codes of "later";
    `url` is the address where there is one for all.
    """

    page: str
    hosts: tuple[str, ...]
    rate: Rate
    text_bytes: int
    body: Body
    key: tuple[str, ...] = ()
    good: object = None
    busy: tuple[object, ...] = ()
    title: int = 100
    quiet: Callable[[str], str] = _as_it_is
    address: Callable[[Endpoint, float], str] = _its_url
    token: str = ""  # how the token stands in a header
    url: str = ""

    def request(self, endpoint: Endpoint, text: str, now_s: float) -> Request:
        cut = answer.within(self.quiet(text), self.text_bytes)
        body = self.body(cut, answer.title(text, self.title), endpoint, now_s)
        has_token = self.token and endpoint.secret
        headers = {"authorization": self.token.format(endpoint.secret)} if has_token else {}
        return answer.post(self.address(endpoint, now_s), body, headers)

    def taken(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
        if self.key:
            return answer.by_code(
                status, headers, body, keys=self.key, good=self.good, busy=self.busy
            )
        return answer.by_status(status, headers, body)


def _signed(key: str, content: str) -> str:
    import base64
    import hashlib
    import hmac

    return base64.b64encode(
        hmac.new(key.encode(), content.encode(), hashlib.sha256).digest()
    ).decode()


def sign_feishu(stamp: str, secret: str) -> str:
    """HMAC-SHA256 of nothing, under the key `stamp`, line feed, secret."""
    return _signed(f"{stamp}\n{secret}", "")


def sign_dingtalk(stamp: str, secret: str) -> str:
    """HMAC-SHA256 of `stamp`, line feed, secret, under the key `secret`."""
    return _signed(secret, f"{stamp}\n{secret}")


def _feishu(text: str, title: str, endpoint: Endpoint, now_s: float) -> dict[str, Any]:
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": text}}
    if not endpoint.secret:
        return body
    stamp = str(int(now_s))
    return {"timestamp": stamp, "sign": sign_feishu(stamp, endpoint.secret)} | body


def _dingtalk(text: str, title: str, endpoint: Endpoint, now_s: float) -> dict[str, Any]:
    # Text, not markdown: names are full of underscores. Only who stands in `at` is called.
    nobody = {"isAtAll": False, "atMobiles": [], "atUserIds": []}
    return {"msgtype": "text", "text": {"content": text}, "at": nobody}


def _dingtalk_address(endpoint: Endpoint, now_s: float) -> str:
    if not endpoint.secret:
        return endpoint.url
    stamp = str(int(now_s * 1000))
    query = urlencode({"timestamp": stamp, "sign": sign_dingtalk(stamp, endpoint.secret)})
    return f"{endpoint.url}{'&' if '?' in endpoint.url else '?'}{query}"


def _ntfy(text: str, title: str, endpoint: Endpoint, now_s: float) -> dict[str, Any]:
    topic = endpoint.url.rstrip("/").rpartition("/")[2]
    return {"topic": topic, "title": title, "message": text}


def _discord(text: str, title: str, endpoint: Endpoint, now_s: float) -> dict[str, Any]:
    # 2,000 characters at most, and no half of an escape at the end.
    content = text if len(text) <= 2_000 else text[:1_998].rstrip("\\") + "…"
    return {"content": content, "allowed_mentions": {"parse": []}}


def _without_tags(text: str) -> str:
    """`<at user_id="all">` and `<@somebody>` call people."""
    return text.replace("<", "＜")


def _slack_escapes(text: str) -> str:
    """As Slack asks for it, so `<!channel>` is only a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_FEISHU = Channel(
    "https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot",
    ("open.feishu.cn/",),
    ((5, 1.0), (100, 60.0)),
    15_000,  # the whole body may have 20 kB
    _feishu,
    ("code", "StatusCode"),  # robots of the first kind say StatusCode
    0,
    (9499, 11232),
    quiet=_without_tags,
)
CHANNELS = {
    "feishu": _FEISHU,
    "lark": Channel(
        "https://open.larksuite.com/document/client-docs/bot-v3/add-custom-bot",
        ("open.larksuite.com/",),
        *(_FEISHU.rate, _FEISHU.text_bytes, _feishu, _FEISHU.key, _FEISHU.good, _FEISHU.busy),
        quiet=_without_tags,
    ),
    "dingtalk": Channel(
        "https://open.dingtalk.com/document/robots/customize-robot-security-settings",
        ("oapi.dingtalk.com/", "api.dingtalk.com/"),
        ((20, 60.0),),
        15_000,
        _dingtalk,
        ("errcode",),
        0,
        (-1, 130101, 410100),
        address=_dingtalk_address,
    ),
    "wecom": Channel(
        "https://developer.work.weixin.qq.com/document/path/91770",
        ("qyapi.weixin.qq.com/",),
        ((20, 60.0),),
        2048,
        lambda text, *_: {"msgtype": "text", "text": {"content": text}},
        ("errcode",),
        0,
        (-1, 45009),
        quiet=_without_tags,
    ),
    "serverchan": Channel(
        "https://sct.ftqq.com",
        ("sctapi.ftqq.com/", "sc.ftqq.com/", "push.ft07.com/"),
        ((5, 86_400.0),),  # of the free plan
        15_000,
        # `desp` is markdown: in a fence names keep their underscores, and lines are lines.
        lambda text, title, *_: {"title": title, "desp": f"```\n{text}\n```"},
        ("code",),
        0,
        title=32,
        quiet=lambda text: text.replace("```", "'''"),
    ),
    "bark": Channel(
        "https://bark.day.app",
        ("api.day.app/",),
        ((1, 1.0),),
        2_500,  # Apple takes 4 kB with everything around it
        lambda text, title, *_: {"title": title, "body": text},
        ("code",),
        200,
    ),
    "ntfy": Channel(
        "https://docs.ntfy.sh/publish/#publish-as-json",
        ("ntfy.sh/",),
        ((1, 5.0),),
        3_800,  # of more it makes an attachment
        _ntfy,
        address=lambda endpoint, _: endpoint.url.rstrip("/").rpartition("/")[0] + "/",
        token="Bearer {}",
    ),
    "telegram": Channel(
        "https://core.telegram.org/bots/api#sendmessage",
        ("api.telegram.org/",),
        ((1, 1.0), (20, 60.0)),
        4_000,
        # No parse_mode: what is in a name is no format.
        lambda text, title, to, _: {
            "chat_id": to.to,
            "text": text,
            "disable_web_page_preview": True,
        },
        ("ok",),
        True,
        # It makes a mention of @name by itself; a word joiner in between keeps it from that.
        quiet=lambda text: re.sub(r"@(?=\w)", "@\u2060", text),
        address=lambda to, _: f"{to.url.rstrip('/')}/bot{to.secret}/sendMessage",
        url="https://api.telegram.org",
    ),
    "slack": Channel(
        "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
        ("hooks.slack.com/",),
        ((1, 1.0),),
        4_000,
        lambda text, *_: {"text": text, "mrkdwn": False},
        quiet=_slack_escapes,
    ),
    "discord": Channel(
        "https://discord.com/developers/docs/resources/webhook#execute-webhook",
        ("discord.com/api/", "discordapp.com/api/"),
        ((5, 5.0), (30, 60.0)),
        15_000,
        _discord,
        quiet=lambda text: re.sub(r"([\\*_`~|<>#])", r"\\\1", text),
    ),
    "autodl": Channel(
        "https://www.autodl.com/docs/wechat_message",
        ("www.autodl.com/", "autodl.com/"),
        ((1, 6.0),),
        2_000,
        lambda text, title, *_: {"title": title, "name": "Boxcar", "content": text},
        ("code",),
        "Success",
        title=32,
        token="{}",
        url="https://www.autodl.com/api/v1/wechat/message/send",
    ),
}
NAMES = tuple(CHANNELS)
# What job.yaml says of each, as it is to be written.
LINES = {
    **{name: f'{name}: {{url: "env:{name.upper()}_URL"}}' for name in NAMES},
    "telegram": 'telegram: {token: "env:TELEGRAM_TOKEN", chat: "env:TELEGRAM_CHAT"}',
    "autodl": 'autodl: {token: "env:AUTODL_TOKEN"}',
}


def service_of(url: str) -> str | None:
    """Whose address this is; None for one of nobody that is known here."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return None
    path = f"{parts.path}/".lower()
    for name, channel in CHANNELS.items():
        for known in channel.hosts:
            known_host, _, begin = known.partition("/")
            is_host = host == known_host or host.endswith(f".{known_host}")
            if is_host and path.startswith(f"/{begin}"):
                return name
    return None
