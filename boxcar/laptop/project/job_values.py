"""The values that job.yaml may hold, each checked by itself; what is wrong raises ValueError."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from boxcar.laptop.common import units
from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.common.provider_keys import NOTIFY, refuse_key
from boxcar.laptop.common.units import Price
from boxcar.shared import names, paths
from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import cell_line, duration, placeholders
from boxcar.shared.cell.placeholders import KNOWN, MORE, UnknownPlaceholderError
from boxcar.shared.channels import known
from boxcar.shared.files.plan import ALL, BYTES_ONLY
from boxcar.shared.sentence import Sentence, _

# Which keys of an artifact in job.yaml go together.


def refuse_odd_artifact(path: str, *, keys: Sequence[str], load: str, take: str) -> None:
    """Raises ValueError for keys that cannot both hold."""
    if keys and load == BYTES_ONLY:
        raise ValueError(
            _(
                "{path!r} has keys, but load: bytes does not load it, so they cannot be checked. "
                "Remove one",
                path=path,
            )
        )
    if take != ALL and not resume_match.is_pattern(path):
        raise ValueError(
            _(
                "take: {take} needs a pattern, such as checkpoints/*.ckpt; {path!r} is not one",
                take=take,
                path=path,
            )
        )


# The words of a command as a person typed them: a placeholder that is unknown gets a hint.


def check_command(words: Iterable[str]) -> None:
    """Raises ValueError for a word that cannot be filled."""
    known = [*(f"{{{name}}}" for name in KNOWN), MORE]
    try:
        for word in words:
            if word != MORE:
                placeholders.parse_word(word)
    except UnknownPlaceholderError as error:
        hint = did_you_mean(f"{{{error.name}}}", known)
        raise UnknownPlaceholderError(error.name, hint) from None


# `run: bash run_queue.sh queue.txt` of job.yaml: another way to name the queues.
#
# Nothing of it is run as it stands: the words say which files are queues, and Boxcar's own wrapper
# runs them.


_PROGRAM = ["bash", "run_queue.sh"]
SCRIPT = _PROGRAM[1]


def queues_of(text: object) -> dict[str, str]:
    """Queue file -> box-a, box-b, ... Raises ValueError for any other words."""
    words = shlex.split(text) if isinstance(text, str) else []
    files = words[len(_PROGRAM) :]
    if words[: len(_PROGRAM)] != _PROGRAM or not files:
        raise ValueError(
            _(
                "expected {program} FILE [FILE ...], found {text!r}",
                program=" ".join(_PROGRAM),
                text=text,
            )
        )
    if len(files) > len(ascii_lowercase):
        raise ValueError(_("{n} queues: list them under queues:, each with its box", n=len(files)))
    return {file: f"box-{letter}" for file, letter in zip(files, ascii_lowercase, strict=False)}


# What a path or pattern below {out} may say, in `resume` and `artifacts` of job.yaml, and where the
# placeholder {resume} may stand.


# The placeholder, and not the text {{resume}}.
_TAKES = re.compile(r"(?<!\{)(?:\{\{)*\{resume\}")


def refuse_odd_pattern(text: str) -> None:
    """Raises ValueError for what nothing could match, whatever a script saves."""
    if "{" in text or "}" in text:
        raise ValueError(
            _(
                "{text!r} takes no placeholder: it is already relative to each cell's {{out}}. "
                "For a part that changes, write *, such as checkpoints/step_*.pt",
                text=text,
            )
        )
    if "**" in text:
        raise ValueError(
            _(
                "{text!r} has '**': a * matches within one name; write */ for each folder",
                text=text,
            )
        )
    if resume_match.is_pattern(text) and "[" in text:
        raise ValueError(_("{text!r} has a '[': only * and ? are wildcards", text=text))


def misplaced_pattern(resume: str | None, words: Iterable[str]) -> str:
    """Why `{resume}` may not stand in these words or values; '' where it may, or is not there."""
    if resume is None or not resume_match.is_pattern(resume):
        return ""
    if not any(_TAKES.search(word) for word in words):
        return ""
    return _(
        "uses {{resume}}, which is empty until a file matches {resume}. Move these words to "
        "resume_args, which are added only if there is a checkpoint",
        resume=resume,
    )


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
        raise ValueError(
            _(
                "expected 1 to 63 of a-z, 0-9 and -, with a letter or digit first; found {found}",
                found=repr(text),
            )
        )
    return text


def _queue_file(text: str) -> str:
    _named_well(queue_name(text))
    return text


# As consoles show it: root@connect.example.com:12345.
_ADDRESS = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+|\[[\w:]+\])(?::(?P<port>\d+))?")


def _place_name(text: str) -> str:
    if (address := _ADDRESS.fullmatch(text)) and (address["user"] or address["port"]):
        raise ValueError(_of_address(address))
    return _named_well(text)


def _named_well(text: str) -> str:
    if not names.PLACE.fullmatch(text):
        raise ValueError(
            _(
                "the name {text!r} may have letters, digits and ._-, with a letter or digit first",
                text=text,
            )
        )
    return text


def _of_address(address: re.Match[str]) -> Sentence:
    """The alias to write into ~/.ssh/config, filled in."""
    keys = {"HostName": address["host"], "Port": address["port"], "User": address["user"]}
    lines = ["Host box-a", *(f"    {key} {value}" for key, value in keys.items() if value)]
    return _(
        "{text!r} is an address; a box is named by its alias, such as box-a. Add to "
        "~/.ssh/config:\n{lines}",
        text=address[0],
        lines="\n".join(lines),
    )


def _words(value: object) -> tuple[str, ...]:
    words = tuple(cell_line.split_words(_text(value)))
    if not words:
        raise ValueError(_("expected the training script and its flags, found nothing"))
    if words[0] in _LAUNCHERS:
        raise ValueError(
            _(
                "write launcher: {launcher} and remove {word!r}: Boxcar puts the launcher before "
                "the command",
                launcher=words[0].rstrip("3"),
                word=words[0],
            )
        )
    check_command(words)
    return words


def _resume_args(value: object) -> tuple[str, ...]:
    words = tuple(cell_line.split_words(_text(value)))
    check_command(words)
    if MORE in words:
        raise ValueError(_("{more} belongs into the command, not here", more=MORE))
    return words


def _time_s(value: object) -> int:
    return duration.parse_duration(_text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(_("expected one string"))
    return _without_nul(value)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(_("has a NUL, which no program accepts"))
    return text


def _inside(text: str) -> str:
    parts = text.split("/")
    if any(part in ("", ".", "..") for part in parts) or not text.isprintable():
        raise ValueError(
            _("{text!r} must be a plain relative path, without '..', '.' or '//'", text=text)
        )
    return text


def _resume(text: str) -> str:
    refuse_odd_pattern(text)
    _inside(text.removesuffix("/"))
    return text


def _artifact_path(text: str) -> str:
    refuse_odd_pattern(text)
    _not_ours(text)
    _inside(text.removesuffix("/"))
    return text if resume_match.is_pattern(text) else text.removesuffix("/")


def _not_ours(text: str) -> str:
    if text.split("/", maxsplit=1)[0].casefold() in paths.AGENTS_OWN:
        raise ValueError(
            _("{text!r} is a file that Boxcar writes itself. Give yours another name", text=text)
        )
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
    if "/" in text or text in ("", ".", "..") or resume_match.is_pattern(text) or is_ours:
        raise ValueError(
            _(
                "{name} is not a name below {{out}}. Write a folder's name, such as data, or a "
                "name and a folder of the code: - data: datasets/cifar",
                name=repr(name),
            )
        )
    if text in known:
        raise ValueError(_("{text!r} is listed twice", text=text))
    return text


def _some_queues(value: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    if not value:
        raise ValueError(_("expected at least one, such as queues: {{queues/queue_1.txt: box-a}}"))
    return value


def _boxes(value: object) -> str | tuple[str, ...]:
    """One box, or those of a pool."""
    if isinstance(value, str):
        return _place_name(value)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise ValueError(_("expected a box, or the boxes of a pool, such as [box-a, box-b]"))
    return distinct(tuple(map(_place_name, value)))


def queues_of_file(file: str, boxes: str | tuple[str, ...]) -> dict[str, str]:
    """By queue, its box: one of that file's name, or one for each box of a pool."""
    name = queue_name(file)
    if isinstance(boxes, str):
        return {name: boxes}
    return {names.member_name(name, box): box for box in boxes}


def distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ValueError(_("{twice!r} is listed twice", twice=twice[0]))
    return texts


def _prices(value: object) -> object:
    return {EVERY_BOX: value} if isinstance(value, str) else value


def _budgets(value: object) -> object:
    """By currency: `200 CNY`, or a list of several."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise ValueError(_('expected an amount such as "200 CNY", or a list of them'))
    pairs = [units.budget_of_text(text) for text in texts]
    distinct(tuple(currency for _amount, currency in pairs))
    return {currency: amount for amount, currency in pairs}


def _auto(value: object) -> object:
    return None if value == "auto" else value


def _env_name(text: str) -> str:
    # The sentence does not repeat the text: somebody may have typed the value after the name.
    if not names.VARIABLE.fullmatch(text):
        raise ValueError(
            _("expected the name of an environment variable and nothing else: letters, digits, _")
        )
    if text.startswith("BOXCAR_"):
        raise ValueError(_("{text!r}: Boxcar sets the names that begin with BOXCAR_", text=text))
    refuse_key(text)
    return text


def _webhook_url(text: str) -> str:
    if text.startswith(ENV_PREFIX):
        return reference(text)
    if not is_http_url(text):
        raise ValueError(_('expected an http(s) URL with a host, or "env:NAME"'))
    if service := known.service_of(text):
        raise ValueError(robot_under_webhook(service))
    return text


def robot_under_webhook(service: str) -> str:
    """What is said of a chat robot's URL under `webhook:`. It would answer 200 and drop it all."""
    return _(
        "this is an address of {service}, which takes no webhooks. Write: - {lines}",
        service=service,
        lines=known.LINES[service],
    )


def _env_reference(text: str) -> str:
    # The sentence does not repeat the value: it may be a secret.
    if not text.startswith(ENV_PREFIX):
        raise ValueError(
            _(
                "anyone who has this address can post there, so it is never written into a file. "
                'Put it into an environment variable, and write "env:" with its name'
            )
        )
    return reference(text)


def _webhook_secret(text: str) -> str:
    # The sentence does not repeat the value: it may be a secret.
    if not text.startswith(ENV_PREFIX):
        raise ValueError(
            _(
                "a secret is never written into a file. Put it into the environment, and write "
                'secret: "env:BOXCAR_WEBHOOK_SECRET"'
            )
        )
    return reference(text)


def reference(text: str) -> str:
    if not names.VARIABLE.fullmatch(text.removeprefix(ENV_PREFIX)):
        raise ValueError(_('expected "env:" and the name of an environment variable'))
    if text.removeprefix(ENV_PREFIX) not in NOTIFY:
        refuse_key(text.removeprefix(ENV_PREFIX))
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
Boxes = Annotated[str | tuple[str, ...], BeforeValidator(_boxes)]
Queues = Annotated[
    dict[Annotated[str, AfterValidator(_queue_file)], Boxes], AfterValidator(_some_queues)
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
Budgets = Annotated[dict[str, float], BeforeValidator(_budgets)]
WebhookUrl = Annotated[str, AfterValidator(_webhook_url)]
EnvReference = Annotated[str, AfterValidator(_env_reference)]
Language = Literal["en", "zh"]
WebhookSecret = Annotated[str, AfterValidator(_webhook_secret)]
