"""What an agent says, kept so that it can be shown in the reader's language.

In an event `reason` or `text` is English. Beside it stands `said`: the template and its fields,
where these are known. Other sentences of an event, and those of a file or an answer, have theirs
in `sentences`, by their English. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from boxcar.shared.sentence import Sentence, has_chinese, said_by

SAID, SENTENCES = "said", "sentences"
# Where an event has its sentence; no event has both.
KEYS = ("reason", "text")


def beside(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data`, with `said` where its sentence knows its template, and `sentences` for others."""
    sentence = next((data[key] for key in KEYS if isinstance(data.get(key), Sentence)), None)
    said = {} if sentence is None else {SAID: _spelled(sentence)}
    others = sentences_in({key: value for key, value in data.items() if key not in KEYS})
    return {**data, **said, **({SENTENCES: others} if others else {})}


def heard(data: Mapping[str, Any]) -> str | None:
    """The sentence of an event, to be shown in any language; None where it has none."""
    text = next((data[key] for key in KEYS if data.get(key) is not None), None)
    return None if text is None else _read(str(text), data.get(SAID))


def sentences_in(value: Any) -> dict[str, Any]:
    """The template and fields of each sentence in it, by its English."""
    if isinstance(value, Sentence):
        return {str(value): _spelled(value)}
    if not isinstance(value, Mapping) and not _is_list(value):
        return {}
    inner = value.values() if isinstance(value, Mapping) else value
    return {english: said for one in inner for english, said in sentences_in(one).items()}


def hear_in(value: Any, sentences: Any) -> Any:
    """The same value, in which these can be shown in any language."""
    if not isinstance(sentences, dict) or not sentences:
        return value
    if isinstance(value, str):
        return _read(value, sentences.get(value))
    if isinstance(value, Mapping):
        return {key: hear_in(one, sentences) for key, one in value.items()}
    return type(value)(hear_in(one, sentences) for one in value) if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return type(value) in (list, tuple)


class Heard(Sentence):
    """A sentence of a file: in English as the file has it, whatever that version's template was."""

    def __new__(cls, english: str, template: str = "", fields: Any = None) -> Heard:
        made = str.__new__(cls, english)
        made.template, made.fields = template, fields or {}
        return made

    def said(self, language: str) -> str:
        """In English where this version does not know the template, or not these fields."""
        if language == "en" or not has_chinese(self.template):
            return str(self)
        try:
            return super().said(language)
        except (LookupError, ValueError, TypeError, AttributeError):
            return str(self)


def _spelled(sentence: Sentence) -> dict[str, Any]:
    fields = {name: _value(value) for name, value in sentence.fields.items()}
    return {"text": sentence.template, "fields": fields}


def _value(value: Any) -> Any:
    """As JSON has it. A sentence within a sentence keeps its English, for versions without it."""
    value = said_by(value) if isinstance(value, Exception) else value
    if isinstance(value, Sentence):
        return {"english": str(value), **_spelled(value)}
    is_plain = value is None or isinstance(value, (str, int))
    return value if is_plain or _is_finite(value) else str(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _read(english: str, said: Any) -> str:
    template, fields = (said.get("text"), said.get("fields")) if isinstance(said, dict) else (0, 0)
    if not (isinstance(template, str) and isinstance(fields, dict)):
        return english
    return Heard(english, template, {name: _field(value) for name, value in fields.items()})


def _field(value: Any) -> Any:
    return _read(str(value.get("english")), value) if isinstance(value, dict) else value
