"""job.yaml: what a person asks for. Read on the laptop only; the box gets it resolved, as a plan.

Here each value is checked by itself. What needs the queue files or the code folder is checked by
`resolve.py`. Values of secrets are never in the file: `resolve_secrets` and `resolve_webhooks`
take them from the laptop's environment.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project import command_words, resume_words, short_run
from boxcar.laptop.project.resources import Resources
from boxcar.laptop.project.short_run import ShortRun
from boxcar.shared import names, paths
from boxcar.shared.cell import duration
from boxcar.shared.cell.placeholders import MORE
from boxcar.shared.errors import InputError
from boxcar.shared.wire import webhook_secret

ENV_PREFIX = "env:"
# The wrapper puts the launcher before the command, and most people type one first.
_LAUNCHERS = ("python", "python3", "torchrun", "accelerate", "deepspeed")
# What the agent itself writes beside the artifacts on the durable tier.
_AGENTS_OWN = (paths.MANIFEST, paths.RECEIPT, "resume")


def queue_name(file: str) -> str:
    """`queue_1` for queues/queue_1.txt."""
    return Path(file).name.removesuffix(".txt")


def _run_name(text: str) -> str:
    if not names.RUN.fullmatch(text):
        raise ValueError(
            f"expected 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit; found {text!r}"
        )
    return text


def _queue_file(text: str) -> str:
    _place_name(queue_name(text))
    return text


def _place_name(text: str) -> str:
    if not names.PLACE.fullmatch(text):
        raise ValueError(
            f"the name {text!r} may hold letters, digits and ._- and begins with a letter or digit"
        )
    return text


def _words(value: object) -> tuple[str, ...]:
    words = tuple(shlex.split(_text(value)))
    if not words:
        raise ValueError("expected the train script and its flags, found nothing")
    if words[0] in _LAUNCHERS:
        raise ValueError(f"leave {words[0]!r} out: the launcher is put before the command")
    command_words.check(words)
    return words


def _resume_args(value: object) -> tuple[str, ...]:
    words = tuple(shlex.split(_text(value)))
    command_words.check(words)
    if MORE in words:
        raise ValueError(f"{MORE} stands in the command, not here")
    return words


def _time_s(value: object) -> int:
    return duration.parse(_text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected one text")
    return _without_nul(value)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL, which no program can be given")
    return text


def _inside(text: str) -> str:
    parts = text.split("/")
    if any(part in ("", ".", "..") for part in parts) or not text.isprintable():
        raise ValueError(f"{text!r} must be a plain relative path, without '..', '.' or '//'")
    return text


def _resume(text: str) -> str:
    resume_words.refuse_odd(text)
    _inside(text.removesuffix("/"))
    return text


def _artifact_path(text: str) -> str:
    if any(char in text for char in "*?{}"):
        raise ValueError(f"{text!r} must be one plain path: no pattern, no placeholder")
    if text.split("/", maxsplit=1)[0].casefold() in _AGENTS_OWN:
        raise ValueError(f"{text!r} is written by Boxcar itself; give the artifact another name")
    return _inside(text)


def _artifact(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _some_artifacts(value: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    if not value:
        raise ValueError(
            "a finished cell must hold something: name its files, such as artifacts: [best.pth]"
        )
    _distinct(tuple(artifact.path for artifact in value))
    return value


def _some_queues(value: dict[str, str]) -> dict[str, str]:
    if not value:
        raise ValueError("expected at least one, such as queues: {queues/queue_1.txt: box-a}")
    return value


def _distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ValueError(f"{twice[0]!r} is listed twice")
    return texts


def _auto(value: object) -> object:
    return None if value == "auto" else value


def _env_name(text: str) -> str:
    # The sentence does not repeat the text: somebody may have typed the value after the name.
    if not names.VARIABLE.fullmatch(text):
        raise ValueError("expected only the name of an environment variable: letters, digits, _")
    if text.startswith("BOXCAR_"):
        raise ValueError(f"{text!r}: names that begin with BOXCAR_ are set by Boxcar itself")
    return text


def _webhook_url(text: str) -> str:
    if text.startswith(ENV_PREFIX):
        return _reference(text)
    if not _is_http_url(text):
        raise ValueError('expected an http(s) URL with a host, or "env:NAME"')
    return text


def _webhook_secret(text: str) -> str:
    # The sentence does not repeat the value: it may be a secret.
    if not text.startswith(ENV_PREFIX):
        raise ValueError(
            "a secret is never written into a file: put it into the environment and write "
            'secret: "env:BOXCAR_WEBHOOK_SECRET"'
        )
    return _reference(text)


def _reference(text: str) -> str:
    if not names.VARIABLE.fullmatch(text.removeprefix(ENV_PREFIX)):
        raise ValueError('expected "env:" and the name of an environment variable')
    return text


def _is_http_url(text: str) -> bool:
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        # Both raise ValueError for what is no port and no IPv6 address.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


Count = Annotated[int, Field(ge=1, le=999_999_999)]
RelativePath = Annotated[str, AfterValidator(_inside)]
ResumePath = Annotated[str, AfterValidator(_resume)]
PlaceName = Annotated[str, AfterValidator(_place_name)]
EnvName = Annotated[str, AfterValidator(_env_name)]
EnvValue = Annotated[str, AfterValidator(_without_nul)]


class Artifact(Model):
    """A file that a finished cell must hold; `keys` must be there when it is loaded."""

    path: Annotated[str, AfterValidator(_artifact_path)]
    keys: tuple[str, ...] = ()


Command = Annotated[tuple[str, ...], BeforeValidator(_words)]
Launcher = Literal["torchrun", "accelerate", "deepspeed", "python"]
Artifacts = Annotated[
    tuple[Annotated[Artifact, BeforeValidator(_artifact)], ...], AfterValidator(_some_artifacts)
]
Time = Annotated[int, BeforeValidator(_time_s)]


class CellException(Model):
    """What the cells of a name or pattern have otherwise than the rest. `time` is in seconds."""

    nproc_per_node: Count | None = None
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    command: Command | None = None
    launcher: Launcher | None = None
    time: Time | None = None
    artifacts: Artifacts | None = None
    resume: ResumePath | None = None

    def is_empty(self) -> bool:
        return not self.model_fields_set


class Webhook(Model):
    """Where events go. `url` may be "env:NAME"; `secret` always is."""

    url: Annotated[str, AfterValidator(_webhook_url)]
    secret: Annotated[str, AfterValidator(_webhook_secret)]


class Notify(Model):
    webhook: Webhook


Short = Annotated[ShortRun, BeforeValidator(short_run.of_text)]


class Job(Model):
    """job.yaml. Paths are relative to its folder; those of artifacts, resume, scratch to {out}."""

    name: Annotated[str, AfterValidator(_run_name)]
    code: str = "."
    command: Command
    workdir: Literal["code", "out"] = "code"
    launcher: Launcher = "torchrun"
    nproc_per_node: Annotated[Count | None, BeforeValidator(_auto)] = None
    cells: dict[str, CellException] = Field(default_factory=dict)
    epochs: Count | None = None
    queues: Annotated[
        dict[Annotated[str, AfterValidator(_queue_file)], PlaceName], AfterValidator(_some_queues)
    ]
    artifacts: Artifacts = Field(default=(), validate_default=True)
    resume: ResumePath | None = None
    resume_args: Annotated[tuple[str, ...], BeforeValidator(_resume_args)] = ()
    time: Time | None = None
    scratch: tuple[RelativePath, ...] = ()
    smoke: Short = ShortRun()
    rehearse: Short = ShortRun()
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    secrets: tuple[EnvName, ...] = ()
    linger_s: Annotated[int, Field(ge=0, le=999_999_999)] = 0
    resources: Resources = Resources()
    candidates: Annotated[tuple[PlaceName, ...], AfterValidator(_distinct)] = ()
    notify: tuple[Notify, ...] = ()


def read_job(path: Path) -> Job:
    """job.yaml, checked. Raises InputError with all its problems."""
    if not path.exists():
        raise InputError(
            f"{path}: there is no such file; go to your project's folder, or name it: --job PATH"
        )
    return yaml_models.load(path, Job)


def resolve_webhooks(
    job: Job, environ: Mapping[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    """The endpoints ({url, secret}) as the box needs them, and warnings of those that are off.

    Raises InputError with all that is wrong. No value from the environment is ever in a sentence.
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
    if not _is_http_url(url):
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
