"""Text in lines of so many columns."""

from __future__ import annotations

from collections.abc import Iterator

from boxcar.shared.news.columns import columns

# What may not begin a line, and what may not end one.
_CLOSING, _OPENING = "，。；：、）！？ ", "（"


def wrapped(text: str, width: int) -> Iterator[str]:
    """Broken between words; Chinese breaks between any two characters."""
    line = ""
    for piece in _pieces(text):
        if line and columns(line + piece.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += piece
    yield line.rstrip()


def _pieces(text: str) -> Iterator[str]:
    """What stays together: a word with the blank behind it, a character with its punctuation."""
    piece = ""
    for char, follower in zip(text, [*text[1:], ""], strict=True):
        piece += char
        is_end = char == " " or columns(char) == 2 or columns(follower) == 2
        if is_end and char not in _OPENING and (not follower or follower not in _CLOSING):
            yield piece
            piece = ""
    yield piece
