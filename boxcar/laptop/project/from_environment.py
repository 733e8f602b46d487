"""What a job takes from the laptop's environment: values of secrets, and where news goes.

No value is ever in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import ENV_PREFIX, is_http_url, robot_under_webhook
from boxcar.laptop.project.notify import Account, Bot, Chat, SignedRobot, Topic, Webhook
from boxcar.shared.channels import known
from boxcar.shared.errors import InputError
from boxcar.shared.wire import webhook_secret


def resolve_webhooks(
    job: Job, environ: Mapping[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    """The endpoints ({url, secret}) as the box needs them, and warnings of those that are off.

    Raises InputError with all that is wrong.
    """
    endpoints: list[dict[str, str]] = []
    warnings: list[str] = []
    problems: list[str] = []
    for webhook in _webhooks(job):
        url, secret = _value(webhook.url, environ), _value(webhook.secret, environ)
        if not url:
            warnings.append(f"{_named(webhook.url)} is not set: no webhooks will be sent")
        elif found := _endpoint_problems(webhook, url, secret):
            problems += found
        else:
            endpoints.append({"url": url, "secret": secret})
    if problems:
        raise InputError(problems)
    return endpoints, warnings


def unset_urls(job: Job, environ: Mapping[str, str]) -> list[str]:
    """Of each endpoint that is off the first variable that is not set."""
    needed = [[webhook.url] for webhook in _webhooks(job)]
    needed += [_settings(chat) for _, chat in _chats(job)]
    missing = [_unset(settings, environ) for settings in needed]
    return [names[0] for names in missing if names]


def _unset(settings: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    return [_named(one) for one in settings if not _value(one, environ)]


def resolve_channels(
    job: Job, environ: Mapping[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    """The chats ({channel, url, secret, to}) as the box needs them, and warnings of those that are
    off. Raises InputError with all that is wrong.
    """
    found: list[dict[str, str]] = []
    warnings: list[str] = []
    problems: list[str] = []
    for name, chat in _chats(job):
        settings = _settings(chat)
        missing = _unset(settings, environ)
        if missing and missing[0] == _named(settings[0]):
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
    url, secret, to = (getattr(chat, "url", None), "", "")
    if isinstance(chat, (Bot, Account, Topic)):
        secret = chat.token or ""
    elif isinstance(chat, SignedRobot):
        secret = chat.secret or ""
    if isinstance(chat, Bot):
        to = chat.chat
    address = _value(url, environ) if url else known.URLS[name]
    return {
        "channel": name,
        "url": address,
        "secret": _value(secret, environ),
        "to": _value(to, environ),
    }


def _chat_problems(chat: Chat, endpoint: dict[str, str]) -> list[str]:
    name, url = endpoint["channel"], endpoint["url"]
    variable = _named(getattr(chat, "url", None) or "")
    if not is_http_url(url):
        return [f"{variable} holds no http(s) URL with a host, and {name} needs one"]
    if any(not value.isprintable() or " " in value for value in endpoint.values()):
        return [f"what notify takes for {name} from the environment holds a space or a line feed"]
    if (service := known.service_of(url)) not in (None, name):
        return [f"{variable} is the address of {service}; write - {known.LINES[service]}"]
    return []


def _webhooks(job: Job) -> list[Webhook]:
    return [notify.webhook for notify in job.notify if notify.webhook]


def _chats(job: Job) -> list[tuple[str, Chat]]:
    return [notify.chat for notify in job.notify if notify.chat]


def _settings(chat: Chat) -> list[str]:
    """All that a chat takes from the environment."""
    named = [getattr(chat, name, None) for name in ("url", "token", "secret", "chat")]
    return [setting for setting in named if setting]


def resolve_secrets(job: Job, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets' values from the environment. Raises InputError that lists all missing names."""
    missing = [name for name in job.secrets if not environ.get(name)]
    if missing:
        raise InputError(
            [f"{job.at('secrets')}: {name} is not set; type: export {name}=…" for name in missing]
        )
    return {name: environ[name] for name in job.secrets}


def credential_names(job: Job) -> tuple[str, ...]:
    """The variables whose values go to each box: secrets, and what webhooks are sent with."""
    webhooks = _webhooks(job)
    settings = [setting for webhook in webhooks for setting in (webhook.url, webhook.secret)]
    settings += [setting for _, chat in _chats(job) for setting in _settings(chat)]
    from_environment = [_named(s) for s in settings if s.startswith(ENV_PREFIX)]
    return tuple(dict.fromkeys((*job.secrets, *from_environment)))


def _endpoint_problems(webhook: Webhook, url: str, secret: str) -> list[str]:
    problems = []
    name = _named(webhook.secret)
    if not is_http_url(url):
        problems.append(f"{_named(webhook.url)} holds no http(s) URL with a host")
    elif service := known.service_of(url):
        problems.append(f"{_named(webhook.url)}: {robot_under_webhook(service)}")
    if not secret:
        problems.append(f"{name} is not set, and webhooks are signed; type: export {name}=whsec_…")
    elif not webhook_secret.is_secret(secret):
        problems.append(f"{name} must be whsec_ and base64, as the receiver of the webhooks has it")
    return problems


def _value(setting: str, environ: Mapping[str, str]) -> str:
    if setting.startswith(ENV_PREFIX):
        return environ.get(_named(setting), "")
    return setting


def _named(setting: str) -> str:
    return setting.removeprefix(ENV_PREFIX)
