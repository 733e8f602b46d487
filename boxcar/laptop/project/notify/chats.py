"""The chats of a job, with what they take from the laptop's environment.

No value is ever in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import ENV_PREFIX, is_http_url
from boxcar.laptop.project.notify.endpoints import (
    BOX,
    FROM_HERE,
    Account,
    Bot,
    Chat,
    Mail,
    SignedRobot,
    Topic,
)
from boxcar.laptop.project.notify.references import name_of, unset, value_of
from boxcar.shared.channels import known
from boxcar.shared.errors import InputError


def chats_of(job: Job) -> list[tuple[str, Chat]]:
    return [notify.chat for notify in job.notify if notify.chat]


def settings_of(chat: Chat) -> list[str]:
    """All that a chat takes from the environment."""
    names = ("url", "token", "secret", "chat", "to", "user", "password", "sender")
    named = [getattr(chat, name, None) for name in names]
    return [setting for setting in named if setting and setting.startswith(ENV_PREFIX)]


def resolve_channels(
    job: Job, environ: Mapping[str, str], place: str = BOX
) -> tuple[list[dict[str, str]], list[str]]:
    """The chats ({channel, url, secret, to}) that `place` sends, and warnings of those that are
    off. Raises InputError with all that is wrong.
    """
    found: list[dict[str, str]] = []
    warnings: list[str] = []
    problems: list[str] = []
    for name, chat in chats_of(job):
        if chat.place != place:
            continue
        settings = settings_of(chat)
        missing = unset(settings, environ)
        if missing and (missing[0] == name_of(settings[0]) or place != BOX):
            warnings.append(f"{missing[0]} is not set: nothing will be sent to {name}")
            continue
        if missing:
            problems.append(f"{missing[0]} is not set; type: export {missing[0]}=…")
            continue
        endpoint = _endpoint(name, chat, environ)
        problems += _chat_problems(chat, endpoint)
        found.append(endpoint)
    keys = [tuple(one.values()) for one in found]
    problems += [f"notify: one {k[0]} is listed twice" for k in set(keys) if keys.count(k) > 1]
    if problems:
        raise InputError(problems)
    return found, warnings


def _endpoint(name: str, chat: Chat, environ: Mapping[str, str]) -> dict[str, str]:
    """Of what each service has: a URL, a secret or token, a chat."""
    if isinstance(chat, Mail):
        return _mail(chat, environ)
    url, secret, to = (getattr(chat, "url", None), "", "")
    if isinstance(chat, (Bot, Account, Topic)):
        secret = chat.token or ""
    elif isinstance(chat, SignedRobot):
        secret = chat.secret or ""
    if isinstance(chat, Bot):
        to = chat.chat
    address = value_of(url, environ) if url else known.URLS[name]
    return {
        "channel": name,
        "url": address,
        "secret": value_of(secret, environ),
        "to": value_of(to, environ),
    }


def _mail(chat: Mail, environ: Mapping[str, str]) -> dict[str, str]:
    """The server with the user and the sender as one URL, as others have theirs."""
    user, sender = value_of(chat.user or "", environ), value_of(chat.sender or "", environ)
    to = value_of(chat.to, environ)
    query = urlencode({"sender": sender or (user if "@" in user else to)})
    url = f"{chat.security}://{quote(user, safe='')}@{chat.host}:{chat.port}/?{query}"
    secret = value_of(chat.password or "", environ)
    return {"channel": "email", "url": url, "secret": secret, "to": to}


def _chat_problems(chat: Chat, endpoint: dict[str, str]) -> list[str]:
    name, url = endpoint["channel"], endpoint["url"]
    if name in FROM_HERE:
        return []
    variable = name_of(getattr(chat, "url", None) or "")
    if not is_http_url(url):
        return [f"{variable} holds no http(s) URL with a host, and {name} needs one"]
    if any(not value.isprintable() or " " in value for value in endpoint.values()):
        return [f"what notify takes for {name} from the environment holds a space or a line feed"]
    if (service := known.service_of(url)) not in (None, name):
        return [f"{variable} is the address of {service}; write - {known.LINES[service]}"]
    return []
