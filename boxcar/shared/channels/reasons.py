"""Why a service did not take a message, as far as its own answer tells. Pure.

The codes are those that each service documents; what is not known here has no reason, and the
service's words alone are told.
"""

from __future__ import annotations

import re

from boxcar.shared.record import dataclass

# Each is a sentence `notify.reason_NAME` of the catalogue, with what to do.
SECRET, CLOCK, GONE, KEYWORD = "secret", "clock", "gone", "keyword"
ADDRESS, OFTEN, CHAT, AWAY = "address", "often", "chat", "away"
REASONS = (SECRET, CLOCK, GONE, KEYWORD, ADDRESS, OFTEN, CHAT, AWAY)

# How far a clock may be off, where a service checks the time of a signature.
SIGNED_WITHIN_S = {"feishu": 3600.0, "lark": 3600.0, "dingtalk": 3600.0, "webhook": 300.0}
# A Date has whole seconds, and an answer takes some.
_SLACK_S = 30.0
_SIGNED = r"sign match fail|sign not match|invalid timestamp|签名不匹配"
_FEISHU = (
    (r'"(code|StatusCode)": ?19021\b', SECRET),
    (r'"(code|StatusCode)": ?19022\b', ADDRESS),
    (r'"(code|StatusCode)": ?19024\b', KEYWORD),
    (r'"(code|StatusCode)": ?19001\b', GONE),
    (r'"(code|StatusCode)": ?(9499|11232)\b', OFTEN),
)
_SAID: dict[str, tuple[tuple[str, str], ...]] = {
    "feishu": _FEISHU,
    "lark": _FEISHU,
    "dingtalk": (
        (r"keywords? not in content", KEYWORD),
        (r"not in whitelist", ADDRESS),
        (_SIGNED, SECRET),
        (r'"errcode": ?(300001|300005|400013|400101)\b|token is not exist', GONE),
        (r'"errcode": ?(130101|410100)\b', OFTEN),
    ),
    "wecom": (
        (r'"errcode": ?93000\b', GONE),
        (r'"errcode": ?45009\b', OFTEN),
        (r'"errcode": ?60020\b', ADDRESS),
    ),
    "serverchan": ((r'"code": ?40001\b|bad pushkey|error.?key', GONE),),
    "bark": ((r"device token|device key", GONE),),
    "ntfy": ((r"^answered 40[13]\b", SECRET),),
    "telegram": (
        (r"^answered 40[14]\b.*(Unauthorized|Not Found)", SECRET),
        (r"chat not found|kicked|blocked|not a member|upgraded to a supergroup", CHAT),
    ),
    "slack": (
        (r"invalid_token|no_service|no_team|^answered 404\b", GONE),
        (r"channel_not_found|channel_is_archived|action_prohibited", CHAT),
    ),
    "discord": ((r"^answered 40[14]\b|\b(10015|50027)\b", GONE),),
    "autodl": ((r"(?i)authoriz|token", SECRET),),
    "email": ((r"^53[045]\b", SECRET), (r"^55[0-4]\b", CHAT)),
    "webhook": ((r"^answered 410\b", GONE), (r"^answered 40[013]\b", SECRET)),
}


@dataclass(frozen=True)
class Told:
    """What came of a message that was not taken; `status` None where nothing answered."""

    said: str
    status: int | None = None
    ahead_s: float | None = None


def reason(channel: str, told: Told) -> str | None:
    """One of REASONS, or None where the answer does not tell."""
    if told.status is None:
        return AWAY
    if told.status == 429:
        return OFTEN
    for pattern, found in _SAID.get(channel, ()):
        if re.search(pattern, told.said):
            return CLOCK if found == SECRET and is_clock_off(channel, told.ahead_s) else found
    return None


def is_clock_off(channel: str, ahead_s: float | None) -> bool:
    """Whether it is off by more than this service allows, where it signs."""
    allowed_s = SIGNED_WITHIN_S.get(channel)
    return None not in (allowed_s, ahead_s) and abs(ahead_s or 0) > (allowed_s or 0) - _SLACK_S
