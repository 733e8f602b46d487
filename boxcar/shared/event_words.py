"""What an agent says in an event, kept so that it can be shown in the reader's language.

`reason` or `text` is English. Beside it stands `said`: the template and its fields, where these are
known. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.shared.sentence import Sentence, has_chinese

SAID = "said"
# Where an event has its sentence; no event has both.
KEYS = ("reason", "text")


def beside(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data`, with `said` where its sentence knows its template."""
    sentence = next((data[key] for key in KEYS if isinstance(data.get(key), Sentence)), None)
    return dict(data) if sentence is None else {**data, SAID: _spelled(sentence)}


def heard(data: Mapping[str, Any]) -> str | None:
    """The sentence of an event, to be shown in any language; None where it has none."""
    text = next((data[key] for key in KEYS if data.get(key) is not None), None)
    return None if text is None else _read(str(text), data.get(SAID))


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
    if isinstance(value, Sentence):
        return {"english": str(value), **_spelled(value)}
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _read(english: str, said: Any) -> str:
    template, fields = (said.get("text"), said.get("fields")) if isinstance(said, dict) else (0, 0)
    if not (isinstance(template, str) and isinstance(fields, dict)):
        return english
    return Heard(english, template, {name: _field(value) for name, value in fields.items()})


def _field(value: Any) -> Any:
    return _read(str(value.get("english")), value) if isinstance(value, dict) else value
