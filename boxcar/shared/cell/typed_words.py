"""Text that a person typed, split into words as a shell splits them; nothing is expanded."""

from __future__ import annotations

import re
import shlex

_MARKS = frozenset("'\"\\")
_TYPED_WORD = re.compile(r"[^ \t\r\n]+")  # what shlex takes as spaces, and no others


def split_words(text: str) -> list[str]:
    """Raises ValueError that says what to do about the text."""
    if _MARKS.isdisjoint(text):  # as shlex would, which reads each character in Python
        return _TYPED_WORD.findall(text)
    try:
        return shlex.split(text, comments=False)
    except ValueError as error:
        raise ValueError(_what_to_do(str(error))) from None


def _what_to_do(why: str) -> str:
    if "quotation" in why:
        return (
            'a quotation mark is opened and not closed: close it, or write "it\'s" where the mark '
            "itself is meant"
        )
    return "ends with a lone \\, which joins it to nothing: remove it, or put it in quotes"
