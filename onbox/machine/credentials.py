"""The box's credentials: one JSON file, mode 600, on the box's own disk, never on the durable tier.

The laptop writes it over stdin; the agent and the cell's wrapper read it. What is wrong with it is
said by field, never by value, and nothing here shows a value in a repr, an error or a log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boxcar.shared import paths
from boxcar.shared.channels import known
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import BoxcarError
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import LANGUAGES
from boxcar.shared.wire import webhook_secret
from onbox.machine import secret_env


@dataclass(frozen=True)
class Webhook:
    """One endpoint. The URL may hold a token, so it is as secret as the secret."""

    url: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Heartbeat:
    """The address of a dead-man's service, in which the box's name may be still to be filled."""

    url: str = field(repr=False)
    every_s: float


@dataclass(frozen=True)
class Credentials:
    """`env` goes into the environment of the training, `webhooks` and `channels` to
    `onbox.webhooks.deliver`, with the language of who reads the messages; `heartbeats` to
    `onbox.webhooks.life_signs`.
    """

    env: dict[str, str] = field(default_factory=dict, repr=False)
    webhooks: tuple[Webhook, ...] = field(default=(), repr=False)
    channels: tuple[Endpoint, ...] = field(default=(), repr=False)
    heartbeats: tuple[Heartbeat, ...] = field(default=(), repr=False)
    language: str = "en"


def read(path: Path) -> Credentials:
    """The credentials in `path`; a missing file has none.

    Raises InputError where somebody else can read or owns the file, DamagedError for its content.
    """
    data = secret_env.private_bytes(str(path))
    if data is None:
        return Credentials()
    found = secret_env.record(data, str(path))
    if problems := list(_problems(found)):
        raise secret_env.damaged(str(path), *problems)
    return _credentials(found)


def secrets_of(found: Credentials) -> frozenset[str]:
    """Every value that nobody else may see."""
    webhooks = (value for one in found.webhooks for value in (one.url, one.secret))
    channels = (value for one in found.channels for value in (one.url, one.secret, one.to))
    checks = (one.url for one in found.heartbeats)
    return frozenset((*found.env.values(), *webhooks, *channels, *checks))


def _credentials(record: Any) -> Credentials:
    webhooks = tuple(Webhook(item["url"], item["secret"]) for item in record.get("webhooks", ()))
    language = record.get("language")
    return Credentials(
        env=record.get("env", {}),
        webhooks=webhooks,
        channels=tuple(channel_of(item) for item in record.get("channels", ())),
        heartbeats=tuple(
            Heartbeat(item["url"], float(item["every_s"])) for item in record.get("heartbeats", ())
        ),
        language=language if language in LANGUAGES else "en",
    )


def channel_of(item: dict[str, str]) -> Endpoint:
    """A chat as the record spells it, once it was checked."""
    return Endpoint(item["channel"], item["url"], item.get("secret", ""), item.get("to", ""))


def _problems(record: object) -> Iterator[str]:
    if problem := secret_env.problem_of(record):
        yield problem
    if not isinstance(record, dict):
        return
    webhooks = record.get("webhooks", [])
    if not isinstance(webhooks, list):
        yield "webhooks: expected a list"
        return
    for index, webhook in enumerate(webhooks):
        yield from _webhook_problems(f"webhooks[{index}]", webhook)
    yield from _channels_problems(record.get("channels", []))
    yield from _heartbeats_problems(record.get("heartbeats", []))
    urls = [webhook.get("url") for webhook in webhooks if isinstance(webhook, dict)]
    if any(url in urls[:index] for index, url in enumerate(urls)):
        yield "webhooks: one url is listed twice"


def _webhook_problems(where: str, webhook: object) -> Iterator[str]:
    if not isinstance(webhook, dict):
        yield f"{where}: expected an object with url and secret"
        return
    if not _is_url(webhook.get("url")):
        yield f"{where}.url: expected an http or https URL"
    if not webhook_secret.is_secret(webhook.get("secret")):
        yield f"{where}.secret: expected whsec_ and base64"


def _channels_problems(channels: object) -> Iterator[str]:
    if not isinstance(channels, list):
        yield "channels: expected a list"
        return
    for index, one in enumerate(channels):
        if not isinstance(one, dict) or one.get("channel") not in known.NAMES:
            yield f"channels[{index}].channel: expected one of {', '.join(known.NAMES)}"
        elif not _is_url(one.get("url")):
            yield f"channels[{index}].url: expected an http or https URL"
        elif not all(isinstance(one.get(name, ""), str) for name in ("secret", "to")):
            yield f"channels[{index}]: expected texts as secret and to"


def _heartbeats_problems(heartbeats: object) -> Iterator[str]:
    if not isinstance(heartbeats, list):
        yield "heartbeats: expected a list"
        return
    for index, one in enumerate(heartbeats):
        if not isinstance(one, dict) or not _is_url(one.get("url")):
            yield f"heartbeats[{index}].url: expected an http or https URL"
        elif not str(one.get("every_s")).isdecimal():
            yield f"heartbeats[{index}].every_s: expected seconds"


def _is_url(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


# --- The secrets of this box as the agent knows them: also those that were replaced while it runs.


class BoxSecrets:
    """`file` is the box's credentials as its plan spells their path."""

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._stamp: tuple[int, ...] | None = None
        self._values: frozenset[str] = frozenset()
        self._known = KnownSecrets()

    def values(self) -> frozenset[str]:
        self._look()
        return self._values

    def known(self) -> KnownSecrets:
        self._look()
        return self._known

    def _look(self) -> None:
        """A file that cannot be read tells nothing, and no training has its values."""
        with contextlib.suppress(BoxcarError, OSError):
            path = paths.on_box(self._file)
            if (stamp := _stamp(path)) != self._stamp:
                self._values |= secrets_of(read(path))
                self._known, self._stamp = KnownSecrets(self._values), stamp


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
