"""What a job takes from the laptop's environment: values of secrets, and where news goes.

No value is ever in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import ENV_PREFIX, is_http_url, robot_under_webhook
from boxcar.laptop.project.notify.chats import chats_of, settings_of
from boxcar.laptop.project.notify.endpoints import BOX, Webhook
from boxcar.laptop.project.notify.references import name_of, unset, value_of
from boxcar.shared.channels import known
from boxcar.shared.errors import InputError
from boxcar.shared.known_secrets import KnownSecrets
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
        url, secret = value_of(webhook.url, environ), value_of(webhook.secret, environ)
        if not url:
            warnings.append(f"{name_of(webhook.url)} is not set: no webhooks will be sent")
        elif found := _endpoint_problems(webhook, url, secret):
            problems += found
        else:
            endpoints.append({"url": url, "secret": secret})
    if problems:
        raise InputError(problems)
    return endpoints, warnings


def unset_urls(job: Job, environ: Mapping[str, str]) -> list[str]:
    """Of each endpoint of the boxes that is off the first variable that is not set."""
    needed = [[webhook.url] for webhook in _webhooks(job)]
    needed += [settings_of(chat) for _, chat in chats_of(job) if chat.place == BOX]
    missing = [unset(settings, environ) for settings in needed]
    return [names[0] for names in missing if names]


def sent_by_boxes(job: Job) -> int:
    """How many of the endpoints boxes send to; this machine sends to the others."""
    return len(_webhooks(job)) + sum(chat.place == BOX for _, chat in chats_of(job))


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
    there = [chat for _, chat in chats_of(job) if chat.place == BOX]
    settings += [setting for chat in there for setting in settings_of(chat)]
    from_environment = [name_of(s) for s in settings if s.startswith(ENV_PREFIX)]
    return tuple(dict.fromkeys((*job.secrets, *from_environment)))


def known_secrets(job: Job, environ: Mapping[str, str]) -> KnownSecrets:
    """Those of the boxes, as far as this machine has their values now."""
    return KnownSecrets(environ.get(name, "") for name in credential_names(job))


def _endpoint_problems(webhook: Webhook, url: str, secret: str) -> list[str]:
    problems = []
    name = name_of(webhook.secret)
    if not is_http_url(url):
        problems.append(f"{name_of(webhook.url)} holds no http(s) URL with a host")
    elif service := known.service_of(url):
        problems.append(f"{name_of(webhook.url)}: {robot_under_webhook(service)}")
    if not secret:
        problems.append(f"{name} is not set, and webhooks are signed; type: export {name}=whsec_…")
    elif not webhook_secret.is_secret(secret):
        problems.append(f"{name} must be whsec_ and base64, as the receiver of the webhooks has it")
    return problems


def _webhooks(job: Job) -> list[Webhook]:
    return [notify.webhook for notify in job.notify if notify.webhook]
