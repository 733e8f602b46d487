"""What a job takes from the laptop's environment: values of secrets. No value is in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from urllib.parse import quote, urlencode

from boxcar.laptop.common.provider_keys import notify_key
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import ENV_PREFIX, is_http_url, robot_under_webhook
from boxcar.laptop.project.notify.endpoints import (
    BOX,
    FROM_HERE,
    Chat,
    Heartbeat,
    Mail,
    Notify,
    Webhook,
)
from boxcar.shared.channels import dead_man, known
from boxcar.shared.channels.answer import WEBHOOK, Endpoint, key_of
from boxcar.shared.errors import InputError
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import webhook_secret

# Each line of `notify:` by itself, with what it takes from this machine's environment.
#
# No value is ever in a sentence.


# What an endpoint may take from the environment; the first is what it cannot be without.
_SETTINGS = ("url", "token", "secret", "chat", "to", "user", "password", "sender")


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
    every_s: int = 0  # of a dead-man's service

    @property
    def warning(self) -> str:
        what = _("nothing will be sent to {channel}", channel=self.channel)
        if self.channel == WEBHOOK:
            what = _("no webhooks will be sent")
        if self.channel == dead_man.HEARTBEAT:
            what = _("no service will miss a box that falls silent")
        return _("{off} is not set: {what}", off=self.off, what=what)


def targets(job: Job, environ: Mapping[str, str], place: str = "") -> list[Target]:
    """In the order of the job; with `place` those that it sends. Raises InputError with all that is
    wrong in one of them.
    """
    counts: Counter[str] = Counter()
    found: list[Target] = []
    problems: list[str] = []
    for line in job.notify:
        channel = line.name
        counts[channel] += 1
        label = channel if counts[channel] == 1 else f"{channel} {counts[channel]}"
        if place in ("", line.place):
            one = _target(line, (label, channel), environ)
            problems += _problems(job, line, one, environ)
            found.append(one)
    keys = Counter(key_of(one.endpoint) for one in found if one.endpoint)
    twice = {one.channel for one in found if one.endpoint and keys[key_of(one.endpoint)] > 1}
    problems += [
        _("notify: one {channel} is listed twice", channel=channel) for channel in sorted(twice)
    ]
    if problems:
        raise InputError(problems)
    return found


def credentials(found: Sequence[Target]) -> dict[str, list[dict[str, str]]]:
    """What goes to the boxes of these, as their file of credentials has it."""
    there = [(one.endpoint, one.every_s) for one in found if one.place == BOX and one.endpoint]
    checks = [{"url": e.url, "every_s": str(every_s)} for e, every_s in there if every_s]
    return {
        "webhooks": [{"url": e.url, "secret": e.secret} for e, _s in there if e.channel == WEBHOOK],
        "channels": [asdict(e) for e, every_s in there if e.channel != WEBHOOK and not every_s],
        **({"heartbeats": checks} if checks else {}),
    }


def missing_for_boxes(job: Job, environ: Mapping[str, str]) -> list[str]:
    """Of each endpoint that boxes send to the first variable that is not set; '' where all are."""
    lines = [line for line in job.notify if line.place == BOX and not line.heartbeat]
    return [next(iter(_unset(line, environ)), "") for line in lines]


def variables_for_boxes(job: Job) -> list[str]:
    return [v for line in job.notify if line.place == BOX for v in _variables(line)]


def _target(line: Notify, names: tuple[str, str], environ: Mapping[str, str]) -> Target:
    place, variables = line.place, tuple(_variables(line))
    missing = _unset(line, environ)
    # A box's chat whose secret is missing is a mistake; without its URL or token it is off.
    if missing and (missing[0] == variables[0] or place != BOX):
        return Target(*names, variables, None, missing[0], place)
    every_s = line.heartbeat.every if line.heartbeat else 0
    return Target(*names, variables, _endpoint(line, names[1], environ), "", place, every_s)


def _settings(line: Notify) -> list[str]:
    settings = line.settings
    return [value for name in _SETTINGS if (value := getattr(settings, name, None))]


def _variables(line: Notify) -> list[str]:
    return [one.removeprefix(ENV_PREFIX) for one in _settings(line) if one.startswith(ENV_PREFIX)]


def _unset(line: Notify, environ: Mapping[str, str]) -> list[str]:
    names = _variables(line)[:1] if line.webhook else _variables(line)
    is_written = line.webhook and not line.webhook.url.startswith(ENV_PREFIX)
    return [] if is_written else [name for name in names if not _get(name, environ)]


def _value(setting: str | None, environ: Mapping[str, str]) -> str:
    """Empty where the variable is not set."""
    if setting and setting.startswith(ENV_PREFIX):
        return _get(setting.removeprefix(ENV_PREFIX), environ)
    return setting or ""


def _get(name: str, environ: Mapping[str, str]) -> str:
    return environ.get(name) or notify_key(name)


def _endpoint(line: Notify, channel: str, environ: Mapping[str, str]) -> Endpoint:
    """Of what each service has: a URL, a secret or token, a chat."""
    settings = line.settings
    if isinstance(settings, Mail):
        return _mail(settings, environ)

    def of(name: str) -> str:
        return _value(getattr(settings, name, None), environ)

    there = known.CHANNELS.get(channel)
    return Endpoint(
        channel, of("url") or (there.url if there else ""), of("token") or of("secret"), of("chat")
    )


def _mail(chat: Mail, environ: Mapping[str, str]) -> Endpoint:
    """The server with the user and the sender as one URL, as others have theirs."""
    user, sender, to = (_value(one, environ) for one in (chat.user, chat.sender, chat.to))
    query = urlencode({"sender": sender or (user if "@" in user else to)})
    url = f"{chat.security}://{quote(user, safe='')}@{chat.host}:{chat.port}/?{query}"
    return Endpoint("email", url, _value(chat.password, environ), to)


def _problems(job: Job, line: Notify, one: Target, environ: Mapping[str, str]) -> Iterator[str]:
    if one.endpoint is None:
        return
    if line.webhook:
        yield from _webhook_problems(line.webhook.url, one)
    elif missing := _unset(line, environ):
        yield _("{missing} is not set. Type: export {missing}=…", missing=missing[0])
    elif one.channel not in FROM_HERE:
        assert not isinstance(line.settings, Webhook)
        yield from _chat_problems(line.settings, one.channel, one.endpoint)
        if line.heartbeat:
            yield from _shared_checks(job, one)


def _webhook_problems(url: str, one: Target) -> Iterator[str]:
    assert one.endpoint
    address, secret = url.removeprefix(ENV_PREFIX), one.variables[-1]
    if not is_http_url(one.endpoint.url):
        yield _("{address} is not an http(s) URL with a host", address=address)
    elif service := known.service_of(one.endpoint.url):
        yield _("{head}: {text}", head=address, text=robot_under_webhook(service))
    if not one.endpoint.secret:
        yield _(
            "{secret} is not set, but webhooks are signed. Type: export {secret}=whsec_…",
            secret=secret,
        )
    elif not webhook_secret.is_secret(one.endpoint.secret):
        yield _(
            "{secret} must be whsec_ and base64, the same as at the receiver",
            secret=secret,
        )


def _shared_checks(job: Job, one: Target) -> Iterator[str]:
    """Of two boxes that tell one check the living one hides that the other is dead."""
    boxes = list(dict.fromkeys(job.boxes))
    url = one.endpoint.url if one.endpoint else ""
    if len({dead_man.filled(url, box) for box in boxes}) < len(boxes):
        yield _(
            "{variable}: {n} boxes would share one check, so one that lives hides one that is "
            "dead. Write {{box}} into the URL, such as "
            "https://hc-ping.com/<ping key>/{{box}}?create=1",
            variable=one.variables[0],
            n=len(boxes),
        )


def _chat_problems(chat: Chat | Heartbeat, name: str, endpoint: Endpoint) -> Iterator[str]:
    variable = (getattr(chat, "url", None) or "").removeprefix(ENV_PREFIX)
    if not is_http_url(endpoint.url):
        yield _(
            "{variable} is not an http(s) URL with a host, and {name} needs one",
            variable=variable,
            name=name,
        )
    elif any(not value.isprintable() or " " in value for value in asdict(endpoint).values()):
        yield _(
            "the value for {name} in the environment has a space or a line break (see notify in "
            "job.yaml)",
            name=name,
        )
    elif (service := known.service_of(endpoint.url)) not in (None, name):
        yield _(
            "{variable} is an address of {service}. Write: - {lines}",
            variable=variable,
            service=service,
            lines=known.LINES[service],
        )


def resolve_secrets(job: Job, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets' values from the environment. Raises InputError that lists all missing names."""
    missing = [name for name in job.secrets if not environ.get(name)]
    if missing:
        raise InputError(
            [
                _(
                    "{job}: {name} is not set. Type: export {name}=…",
                    job=job.at("secrets"),
                    name=name,
                )
                for name in missing
            ]
        )
    return {name: environ[name] for name in job.secrets}


def credential_names(job: Job) -> tuple[str, ...]:
    """The variables whose values go to each box: secrets, and what webhooks are sent with."""
    return tuple(dict.fromkeys((*job.secrets, *variables_for_boxes(job))))


def known_secrets(job: Job, environ: Mapping[str, str]) -> KnownSecrets:
    """Those of the boxes, as far as this machine has their values now."""
    return KnownSecrets(environ.get(name, "") for name in credential_names(job))
