"""A sentence of the catalogue: an id and its fields, said in the language of who reads it.

As a string it is English, so files, `--json` and whatever puts it into another text need not know
of languages. Only who shows it to a person asks for theirs. Each topic is a module beside this one
or in `verbs`, and an id is `topic.name`.
"""

from __future__ import annotations

import functools
import importlib
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LANGUAGES = ("en", "zh")
_FOLDER = "boxcar.shared.catalogue"


class Said(NamedTuple):
    """The same in each language; `{name}` is a field, `{n:cell|cells}` a noun for a number."""

    en: str
    zh: str


class Sentence(str):
    """`Sentence("board.left", time="12m")`: English as a string, `said("zh")` for another reader.

    Raises KeyError for an id or a field that does not exist.
    """

    id: str
    fields: dict[str, Any]

    def __new__(cls, id: str, /, **fields: Any) -> Sentence:
        made = super().__new__(cls, _filled(id, "en", fields))
        made.id, made.fields = id, fields
        return made

    def said(self, language: str) -> str:
        """In one of LANGUAGES; fields that are sentences too are said in the same one."""
        return _filled(self.id, language, self.fields)


def sentence_or_text(id: str, text: str) -> str:
    """The sentence of this id; the text itself where there is none, as of a newer version."""
    try:
        return Sentence(id)
    except KeyError:
        return text


def said_by(error: Exception) -> str:
    """What an error was raised with: `str` of it would be English alone."""
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Sentence) else str(error)


def chained(id: str, parts: Sequence[str]) -> str:
    """The parts in a row, by a sentence of two fields: `first` and `second`; '' of none."""
    return functools.reduce(lambda a, b: Sentence(id, first=a, second=b), parts) if parts else ""


def in_language(text: Any, language: str) -> Any:
    """A sentence in this language, also one of a profile; whatever else it is as it is."""
    said = getattr(text, "said", None)
    return said(language) if said else text


def _filled(id: str, language: str, fields: dict[str, Any]) -> str:
    topic, _, name = id.partition(".")
    said = _topic(topic)[name]
    spelled = {key: in_language(value, language) for key, value in fields.items()}
    return _FILLING.vformat(getattr(said, language), (), spelled)


@functools.cache
def _topic(name: str) -> Mapping[str, Said]:
    """Late and by name: a process says few of them, and a box compiles each module it imports."""
    module = f"{_FOLDER}.{name}"
    try:
        topic = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        topic = importlib.import_module(f"{_FOLDER}.verbs.{name}")
    return dict(topic.SENTENCES)


class _Filling(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """A field; behind `:one|several` one of two nouns, by the number."""
        one, bar, several = format_spec.partition("|")
        if bar:
            return one if value == 1 else several
        return str(super().format_field(value, format_spec))


_FILLING = _Filling()
