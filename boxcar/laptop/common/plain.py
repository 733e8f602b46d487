"""Text of others, such as names and logs, as it may go to a terminal."""

from __future__ import annotations

import unicodedata

# Invisible direction marks can make a name read as another one.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def plain(text: str) -> str:
    """Without control characters, so that a name or a log line cannot drive the terminal."""
    if text.isascii() and text.isprintable():  # as nearly all is
        return text
    return "".join(char if is_seen(char) else _spelled(char) for char in text)


def is_seen(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in _UNSEEN


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode()
