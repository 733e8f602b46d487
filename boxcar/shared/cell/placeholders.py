"""The words of job.yaml's command: literal text, and placeholders such as `{cfg}`.

In a command `{{` and `}}` are braces. In a value of `env:` every brace stays that is none of the
placeholders, because such values hold JSON.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

KNOWN = ("cfg", "task", "epochs", "name", "run", "out", "resume", "code", "data", "after")
# A whole word of the command, which becomes the line's overrides.
MORE = "{more}"
_AFTER = "after:"
_IN_ENV = ("cfg", "task", "epochs", "name", "run", "out", "resume", "data")
_PART = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])|(?P<text>[^{}]+)")
_ENV_PART = re.compile(rf"\{{\{{({'|'.join(_IN_ENV)})\}}\}}|\{{({'|'.join(_IN_ENV)})\}}")


class UnknownPlaceholderError(ValueError):
    """`name` is what stood in the braces."""

    def __init__(self, name: str, hint: str = "") -> None:
        known = " ".join([*(f"{{{placeholder}}}" for placeholder in KNOWN), MORE])
        said = _(
            "unknown placeholder {name}{near}; known: {known}. Write a literal brace twice",
            name=f"{{{name}}}",
            near=hint,
            known=known,
        )
        super().__init__(said)
        self.name = name


@dataclass(frozen=True)
class Placeholder:
    name: str


def parse_word(word: str) -> list[str | Placeholder]:
    """Split a word of the command into literal text and placeholders; `{{` and `}}` are braces.

    Raises ValueError for an unknown placeholder or a lone brace.
    """
    parts: list[str | Placeholder] = []
    for match in _PART.finditer(word):
        if match["lone"]:
            raise ValueError(
                _(
                    "unmatched {lone} in {word!r}; write a literal brace twice",
                    word=word,
                    lone=match["lone"],
                )
            )
        if match["name"] is not None:
            parts.append(Placeholder(_known(match["name"])))
        else:
            text = match["text"] or match["brace"][0]
            before = parts.pop() if parts and isinstance(parts[-1], str) else ""
            parts.append(f"{before}{text}")
    return parts


def takes(words: Sequence[str], name: str) -> bool:
    """Whether a word has that placeholder; `{after:x}` is one of `after`."""
    return any(found.partition(":")[0] == name for found in _named(tuple(words)))


def env_takes(values: Iterable[str], name: str) -> bool:
    """Whether a value of `env:` has that placeholder; every other brace there is text."""
    return any(match[2] == name for value in values for match in _ENV_PART.finditer(value))


def named_after(words: Sequence[str]) -> list[str]:
    """The cells that `{after:CELL}` names; '' for a plain `{after}`."""
    found = (name.partition(":") for name in _named(tuple(words)))
    return [cell for name, _, cell in found if name == "after"]


@functools.lru_cache(maxsize=256)  # each cell's command is asked for each of them
def _named(words: tuple[str, ...]) -> tuple[str, ...]:
    parts = (part for word in words if word != MORE for part in parse_word(word))
    return tuple(part.name for part in parts if isinstance(part, Placeholder))


def fill(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with each placeholder replaced; `values` has all that they name."""
    return [
        "".join(
            values[part.name] if isinstance(part, Placeholder) else part
            for part in parse_word(word)
        )
        for word in words
    ]


def fill_env(value: str, values: Mapping[str, str]) -> str:
    """A value of `env:`; `{{name}}` is `{name}` itself, and every other brace stays."""
    return _ENV_PART.sub(
        lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]],
        value,
    )


def _known(name: str) -> str:
    if f"{{{name}}}" == MORE:
        raise ValueError(
            _("{more} must be a word of its own: the line's overrides replace it", more=MORE)
        )
    if name in KNOWN or (name.startswith(_AFTER) and name != _AFTER):
        return name
    raise UnknownPlaceholderError(name)
