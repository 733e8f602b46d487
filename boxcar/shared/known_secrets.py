"""The values of secrets that are known here, taken out of what scripts and libraries have said.

An address in an error has a value in its URL-quoted form, a traceback has it in quotes, and where a
sentence was cut it ends with a part of one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

LEFT_OUT = "[…]"
_LEAST = 4  # characters; a shorter value would be left out of ordinary words
_PLAIN = re.compile(r"[\w.~-]", re.ASCII)  # is never quoted
_CUT = r"(?=\Z|…|\.\.\.)"


class KnownSecrets:
    """A value of several lines is several: its lines are said one at a time."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line.strip() for value in values for line in value.splitlines()}
        known = sorted((line for line in lines if len(line) >= _LEAST), key=len, reverse=True)
        self._any = re.compile("|".join(map(_spellings, known))) if known else None

    def left_out_of(self, said: Any) -> Any:
        """The same without them: a text, or whatever JSON has, of which names are words too."""
        if self._any is None:
            return said
        if isinstance(said, str):
            return self._any.sub(LEFT_OUT, said) if self._any.search(said) else said
        if isinstance(said, Mapping):
            return {self.left_out_of(k): self.left_out_of(v) for k, v in said.items()}
        if isinstance(said, (list, tuple)):
            return type(said)(map(self.left_out_of, said))
        return said


NONE_KNOWN = KnownSecrets()


def _spellings(value: str) -> str:
    """A pattern of all that a value may be spelled as; of a text that was cut, of its beginning."""
    each = [_spelled(character) for character in value]
    return "".join([*each[:_LEAST], *(f"(?:{one}|{_CUT})" for one in each[_LEAST:])])


def _spelled(character: str) -> str:
    if _PLAIN.match(character):
        return re.escape(character)
    quoted = "".join(f"%{byte:02x}" for byte in character.encode(errors="surrogateescape"))
    escaped = r"\\?" if character in "\\'\"" else ""
    plus = r"|\+" if character == " " else ""
    return f"(?:{escaped}{re.escape(character)}|(?i:{quoted}){plus})"
