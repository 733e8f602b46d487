"""A sentence for a person: English where it is written, and said in the language of who reads it.

`_("{n} {n:cell|cells} left", n=3)` is a `str`, in English, so files, `--json` and whatever puts it
into another text need not know of languages. Only who shows it to a person asks for theirs. The
Chinese stands in zh.po beside this; `make words` keeps both in step.
"""

from __future__ import annotations

import contextlib
import functools
import gettext
import io
import pkgutil
import string
from collections.abc import Collection, Sequence
from typing import Any

LANGUAGES = ("en", "zh")


class Sentence(str):
    """A template and its fields: `{name}` is a field, `{n:cell|cells}` a noun for a number.

    As a string it is English; `said("zh")` for another reader. Raises KeyError for a field that
    the template has and nobody gave.
    """

    template: str
    fields: dict[str, Any]

    def __new__(cls, template: str, /, **fields: Any) -> Sentence:
        made = super().__new__(cls, _filled(template, "en", fields))
        made.template, made.fields = template, fields
        return made

    def said(self, language: str) -> str:
        """In one of LANGUAGES; fields that are sentences too are said in the same one."""
        return _filled(_translated(self.template, language), language, self.fields)


def _(template: str, /, **fields: Any) -> Sentence:
    """The sentence of this template, which has to stand here as it is, for whoever collects them.

    Raises KeyError for a field that nobody gave. `_("{box} does not answer", box="a")`.
    """
    return Sentence(template, **fields)


def mark(template: str) -> str:
    """The template itself, collected here and said elsewhere: `_(TITLES[key], n=3)`."""
    return template


def known_word(word: str, words: Collection[str]) -> str:
    """A word of ours as a sentence; one of a newer version, or of a person, stays as it is."""
    return Sentence(word) if word in words else word


def quotation(text: str) -> Sentence:
    """Words of a library or a tool: who reads another language sees them in quotation marks."""
    return _("{quotation}", quotation=text)


def said_by(error: BaseException) -> str:
    """What an error was raised with: `str` of it would be English alone. One that is not ours is
    quoted.
    """
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Sentence) else quotation(str(error))


def chained(template: str, parts: Sequence[Any]) -> str:
    """The parts in a row, by a template of two fields: `first` and `second`; '' of none."""
    if len(parts) < 2:
        whole: str = parts[0] if parts else ""
        return whole
    # By halves: one within another, a thousand parts would be deeper than Python goes.
    half = len(parts) // 2
    first, second = (chained(template, some) for some in (parts[:half], parts[half:]))
    return Sentence(template, first=first, second=second)


def in_language(text: Any, language: str) -> Any:
    """A sentence in this language, also one of a profile or an error; whatever else it is as it
    is.
    """
    said = getattr(text, "said", None)
    if said is None and isinstance(text, Exception):
        said = getattr(said_by(text), "said", None)
    return said(language) if said else text


def has_chinese(template: str) -> bool:
    """Whether this version knows the template; the first question reads the catalogue."""
    return bool(template) and _chinese().gettext(template) != template


def _filled(template: str, language: str, fields: dict[str, Any]) -> str:
    spelled = {key: in_language(value, language) for key, value in fields.items()}
    if language == "zh":
        ours = {key for key, value in fields.items() if isinstance(value, Sentence)}
        return _FILLING.spaced(template, spelled, ours)
    return _FILLING.vformat(template, (), spelled)


def _translated(template: str, language: str) -> str:
    return template if language == "en" else _chinese().gettext(template)


@functools.cache
def _chinese() -> gettext.NullTranslations:
    """Read when somebody reads Chinese. A box has but its own sentences; in a checkout that nobody
    has built there are none, and English is better than nothing.
    """
    found = gettext.NullTranslations()
    for package in ("boxcar", "boxcar.shared"):
        with contextlib.suppress(OSError):  # of an archive it is no FileNotFoundError
            compiled = gettext.GNUTranslations(
                io.BytesIO(pkgutil.get_data(package, "zh.mo") or b"")
            )
            compiled.add_fallback(found)
            found = compiled
    return found


class _Filling(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """A field; behind `:one|several` one of two nouns, by the number."""
        one, bar, several = format_spec.partition("|")
        if bar:
            return one if value == 1 else several
        return str(super().format_field(value, format_spec))

    def spaced(self, template: str, fields: dict[str, Any], ours: Collection[str]) -> str:
        """As Chinese is set: a space between a character and a Latin word, and none between two
        characters. Only where a field begins or ends: what a person wrote stays as it is.
        """
        text, is_field, is_ours = "", False, False
        for literal, name, spec, conversion in self.parse(template):
            # An escaped brace ends a piece as a field does.
            text = _joined(text, literal, is_ours) if is_field else text + literal
            if is_field := name is not None:
                value = self.convert_field(self.get_field(name or "", (), fields)[0], conversion)
                is_ours = name in ours
                text = _joined(text, self.format_field(value, spec or ""), is_ours)
        return text


def _joined(first: str, second: str, is_ours: bool) -> str:
    """`is_ours`: the field is a sentence, so a blank at its edge was put there for another."""
    if is_ours and _is_wide(first.rstrip(" ")[-1:]) and _is_wide(second.lstrip(" ")[:1]):
        return first.rstrip(" ") + second.lstrip(" ")
    one, other = first[-1:], second[:1]
    is_apart = (_is_han(one) and _is_latin(other)) or (_is_latin(one) and _is_han(other))
    return f"{first} {second}" if is_apart else first + second


def _is_wide(char: str) -> bool:
    return _is_han(char) or "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uffef"


def _is_han(char: str) -> bool:
    return "\u4e00" <= char <= "\u9fff"


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalnum()


_FILLING = _Filling()
