"""What a job takes from the laptop's environment: values of secrets, and where webhooks go.

No value is ever in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.project.job import Job, Webhook
from boxcar.laptop.project.job_values import ENV_PREFIX, is_http_url
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
    for webhook in (notify.webhook for notify in job.notify):
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
    """The variables of webhooks that hold no URL."""
    urls = [notify.webhook.url for notify in job.notify]
    return [_named(url) for url in urls if not _value(url, environ)]


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
    webhooks = [notify.webhook for notify in job.notify]
    settings = [setting for webhook in webhooks for setting in (webhook.url, webhook.secret)]
    from_environment = [_named(s) for s in settings if s.startswith(ENV_PREFIX)]
    return tuple(dict.fromkeys((*job.secrets, *from_environment)))


def _endpoint_problems(webhook: Webhook, url: str, secret: str) -> list[str]:
    problems = []
    name = _named(webhook.secret)
    if not is_http_url(url):
        problems.append(f"{_named(webhook.url)} holds no http(s) URL with a host")
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
