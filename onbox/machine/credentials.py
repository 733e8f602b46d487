"""The box's credentials: one JSON file, mode 600, on the box's own disk, never on the durable tier.

The laptop writes it over stdin; the agent and the cell's wrapper read it. What is wrong with it is
said by field, never by value, and nothing here shows a value in a repr, an error or a log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from boxcar.shared import names
from boxcar.shared.catalogue.sentence import LANGUAGES
from boxcar.shared.channels import known
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.record import dataclass
from boxcar.shared.wire import webhook_secret

_OTHERS = 0o077


@dataclass(frozen=True)
class Webhook:
    """One endpoint. The URL may hold a token, so it is as secret as the secret."""

    url: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Credentials:
    """`env` goes into the environment of the training, `webhooks` and `channels` to
    `onbox.webhooks.deliver`, with the language of who reads the messages.
    """

    env: dict[str, str] = field(default_factory=dict, repr=False)
    webhooks: tuple[Webhook, ...] = field(default=(), repr=False)
    channels: tuple[Endpoint, ...] = field(default=(), repr=False)
    language: str = "en"


def read(path: Path) -> Credentials:
    """The credentials in `path`; a missing file has none.

    Raises InputError where somebody else can read or owns the file, DamagedError for its content.
    """
    try:
        with path.open("rb") as file:
            _refuse_if_shared(path, os.fstat(file.fileno()))
            data = file.read()
    except FileNotFoundError:
        return Credentials()
    except PermissionError as error:
        raise InputError(f"{path}: cannot be read by user {os.geteuid()}, who runs this") from error
    return _parse(data, path)


def _refuse_if_shared(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise InputError(
            f"{path}: holds secrets, but belongs to user {status.st_uid}; expected user "
            f"{os.geteuid()}, who runs this. Remove it and push the credentials again."
        )
    if status.st_mode & _OTHERS:
        mode = status.st_mode & 0o777
        raise InputError(
            f"{path}: holds secrets, but others can reach it (mode {mode:o}, expected 600). "
            f"Type: chmod 600 {path}"
        )


def _parse(data: bytes, path: Path) -> Credentials:
    try:
        record = json.loads(data)
    except ValueError:
        # `from None`: the error of json keeps the whole document.
        raise DamagedError(f"{path}: not a JSON document. Push the credentials again.") from None
    problems = list(_problems(record))
    if problems:
        raise DamagedError("\n".join(f"{path}: {problem}" for problem in problems))
    webhooks = tuple(Webhook(item["url"], item["secret"]) for item in record.get("webhooks", ()))
    language = record.get("language")
    return Credentials(
        env=record.get("env", {}),
        webhooks=webhooks,
        channels=tuple(channel_of(item) for item in record.get("channels", ())),
        language=language if language in LANGUAGES else "en",
    )


def channel_of(item: dict[str, str]) -> Endpoint:
    """A chat as the record spells it, once it was checked."""
    return Endpoint(item["channel"], item["url"], item.get("secret", ""), item.get("to", ""))


def _problems(record: object) -> Iterator[str]:
    if not isinstance(record, dict):
        yield "expected a JSON object"
        return
    env, webhooks = record.get("env", {}), record.get("webhooks", [])
    if not isinstance(env, dict) or not all(_is_variable(*item) for item in env.items()):
        yield "env: expected names of variables with texts as their values"
    if not isinstance(webhooks, list):
        yield "webhooks: expected a list"
        return
    for index, webhook in enumerate(webhooks):
        yield from _webhook_problems(f"webhooks[{index}]", webhook)
    yield from _channels_problems(record.get("channels", []))
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


def _is_variable(name: str, value: object) -> bool:
    return bool(names.VARIABLE.fullmatch(name)) and isinstance(value, str) and "\0" not in value


def _is_url(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
