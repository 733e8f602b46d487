"""Each line of `notify:` by itself, under a name that a person can type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from boxcar.laptop.project.from_environment import resolve_webhooks
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.notify.chats import resolve_channels, settings_of
from boxcar.laptop.project.notify.endpoints import BOX, Notify
from boxcar.laptop.project.notify.references import name_of, unset
from boxcar.shared.channels.answer import WEBHOOK, Endpoint
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Target:
    """`label` is the service, with a number from the second of its kind on. `variables` are those
    that it takes; `off` the first that is not set, and then there is no endpoint. `place` says who
    sends: a box, or this machine.
    """

    label: str
    channel: str
    variables: tuple[str, ...]
    endpoint: Endpoint | None = field(default=None, repr=False)
    off: str = ""
    place: str = BOX


def targets(job: Job, environ: Mapping[str, str]) -> list[Target]:
    """In the order of the job. Raises InputError with what is wrong in one of them."""
    counts: Counter[str] = Counter()
    found = []
    for line in job.notify:
        channel = line.chat[0] if line.chat else WEBHOOK
        counts[channel] += 1
        label = channel if counts[channel] == 1 else f"{channel} {counts[channel]}"
        found.append(_target(job, line, (label, channel), environ))
    return found


def _target(job: Job, line: Notify, names: tuple[str, str], environ: Mapping[str, str]) -> Target:
    settings = _settings(line)
    variables = tuple(name_of(one) for one in settings if one.startswith("env:"))
    place = line.chat[1].place if line.chat else BOX
    endpoint = _endpoint(job.model_copy(update={"notify": (line,)}), environ, place)
    missing = unset(settings, environ) if endpoint is None else []
    return Target(*names, variables, endpoint, missing[0] if missing else "", place)


def _settings(line: Notify) -> list[str]:
    if line.webhook:
        return [line.webhook.url, line.webhook.secret]
    return settings_of(line.chat[1]) if line.chat else []


def _endpoint(job: Job, environ: Mapping[str, str], place: str) -> Endpoint | None:
    """Of a job with one line."""
    webhooks, _ = resolve_webhooks(job, environ)
    chats, _ = resolve_channels(job, environ, place)
    for one in webhooks:
        return Endpoint(WEBHOOK, one["url"], one["secret"])
    return next((Endpoint(**one) for one in chats), None)
