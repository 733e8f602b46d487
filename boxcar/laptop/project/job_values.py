"""The values that job.yaml may hold, each checked by itself; what is wrong raises ValueError."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from boxcar.laptop.common.units import Price
from boxcar.laptop.project import command_words, pattern_words
from boxcar.shared import names, out_pattern, paths
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import duration, typed_words
from boxcar.shared.cell.placeholders import MORE
from boxcar.shared.channels import known

ENV_PREFIX = "env:"
# In place of a box's name: what was typed for all of them.
EVERY_BOX = ""
# The wrapper puts the launcher before the command, and most people type one first.
_LAUNCHERS = ("python", "python3", "torchrun", "accelerate", "deepspeed")


def queue_name(file: str) -> str:
    """`queue_1` for queues/queue_1.txt."""
    return Path(file).name.removesuffix(".txt")


def _run_name(text: str) -> str:
    if not names.RUN.fullmatch(text):
        raise ValueError(Sentence("files.run_name", found=repr(text)))
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
    words = tuple(typed_words.split_words(_text(value)))
    if not words:
        raise ValueError(Sentence("files.no_command"))
    if words[0] in _LAUNCHERS:
        raise ValueError(Sentence("files.launcher_first", word=words[0]))
    command_words.check_command(words)
    return words


def _resume_args(value: object) -> tuple[str, ...]:
    words = tuple(typed_words.split_words(_text(value)))
    command_words.check_command(words)
    if MORE in words:
        raise ValueError(f"{MORE} stands in the command, not here")
    return words


def _time_s(value: object) -> int:
    return duration.parse_duration(_text(value))


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
    pattern_words.refuse_odd_pattern(text)
    _inside(text.removesuffix("/"))
    return text


def _artifact_path(text: str) -> str:
    pattern_words.refuse_odd_pattern(text)
    _not_ours(text)
    _inside(text.removesuffix("/"))
    return text if out_pattern.is_pattern(text) else text.removesuffix("/")


def _not_ours(text: str) -> str:
    if text.split("/", maxsplit=1)[0].casefold() in paths.AGENTS_OWN:
        raise ValueError(f"{text!r} is written by Boxcar itself; give the file another name")
    return text


def _links(value: object) -> object:
    """`data`, or `data: datasets/cifar`: each name below {out}, with its folder of the code."""
    found: dict[str, str] = {}
    for one in value if isinstance(value, list) else [value]:
        named = one.items() if isinstance(one, dict) else [(one, one)]
        for name, folder in named:
            at = _link_name(name, found)
            found[at] = _inside(_text(folder).removesuffix("/"))
    return found


def _link_name(name: object, known: Collection[str]) -> str:
    text = _text(name).removesuffix("/")
    is_ours = text.casefold() in paths.AGENTS_OWN
    if "/" in text or text in ("", ".", "..") or out_pattern.is_pattern(text) or is_ours:
        raise ValueError(Sentence("files.link_name", name=repr(name)))
    if text in known:
        raise ValueError(f"{text!r} is listed twice")
    return text


def _some_queues(value: dict[str, str]) -> dict[str, str]:
    if not value:
        raise ValueError(Sentence("files.no_queues"))
    return value


def distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ValueError(f"{twice[0]!r} is listed twice")
    return texts


def _prices(value: object) -> object:
    return {EVERY_BOX: value} if isinstance(value, str) else value


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
        return reference(text)
    if not is_http_url(text):
        raise ValueError('expected an http(s) URL with a host, or "env:NAME"')
    if service := known.service_of(text):
        raise ValueError(robot_under_webhook(service))
    return text


def robot_under_webhook(service: str) -> str:
    """What is said of a chat robot's URL under `webhook:`. It would answer 200 and drop it all."""
    return (
        f"this is the address of {service}, which takes no webhooks; write - {known.LINES[service]}"
    )


def _env_reference(text: str) -> str:
    # The sentence does not repeat the value: it may be a secret.
    if not text.startswith(ENV_PREFIX):
        raise ValueError(
            "who has it can write there, so it is never written into a file: put it into the "
            'environment and write "env:" with the name of its variable'
        )
    return reference(text)


def _webhook_secret(text: str) -> str:
    # The sentence does not repeat the value: it may be a secret.
    if not text.startswith(ENV_PREFIX):
        raise ValueError(
            "a secret is never written into a file: put it into the environment and write "
            'secret: "env:BOXCAR_WEBHOOK_SECRET"'
        )
    return reference(text)


def reference(text: str) -> str:
    if not names.VARIABLE.fullmatch(text.removeprefix(ENV_PREFIX)):
        raise ValueError('expected "env:" and the name of an environment variable')
    return text


def is_http_url(text: str) -> bool:
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
MetricFile = Annotated[RelativePath, AfterValidator(_not_ours)]
ResumePath = Annotated[str, AfterValidator(_resume)]
PlaceName = Annotated[str, AfterValidator(_place_name)]
EnvName = Annotated[str, AfterValidator(_env_name)]
EnvValue = Annotated[str, AfterValidator(_without_nul)]
RunName = Annotated[str, AfterValidator(_run_name)]
Queues = Annotated[
    dict[Annotated[str, AfterValidator(_queue_file)], PlaceName], AfterValidator(_some_queues)
]
Ranks = Annotated[Count | None, BeforeValidator(_auto)]
Command = Annotated[tuple[str, ...], BeforeValidator(_words)]
ResumeArgs = Annotated[tuple[str, ...], BeforeValidator(_resume_args)]
Launcher = Literal["torchrun", "accelerate", "deepspeed", "python", "none"]
Time = Annotated[int, BeforeValidator(_time_s)]  # in seconds
ArtifactPath = Annotated[str, AfterValidator(_artifact_path)]
Links = Annotated[dict[str, str], BeforeValidator(_links)]
Collected = Annotated[tuple[ArtifactPath, ...], AfterValidator(distinct)]
Candidates = Annotated[tuple[PlaceName, ...], AfterValidator(distinct)]
# Of an hour, by the box's name.
Prices = Annotated[dict[str, Price], BeforeValidator(_prices)]
WebhookUrl = Annotated[str, AfterValidator(_webhook_url)]
EnvReference = Annotated[str, AfterValidator(_env_reference)]
Language = Literal["en", "zh"]
WebhookSecret = Annotated[str, AfterValidator(_webhook_secret)]
