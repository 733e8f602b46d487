"""Text in lines that fit, broken between words; what a person copies stays in one piece."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# As people type them: a verb of ours with its flags and their values, and what stands behind
# `type:` up to the end of the line.
_COMMAND = re.compile(
    r"(?:\S*/)?\b(?:boxcar|invoke) [a-z][a-z-]*(?: --?[a-z][a-z-]*(?:[= ](?:'[^'\n]*'|[^\s'(]+))?)*"
    r"|(?<=[Tt]ype: ).+|(?<=by hand: ).+"
)
# Stands for a blank within such a piece; what is shown holds no control characters.
_KEPT = "\0"
_WORD = re.compile(r" *[^ ]+")
# A line begins with none of these, and ends with none of those.
_CLOSING, _OPENING = "，。、；：！？）》」』”’…", "（《「『“‘"


def wrap_text(text: str, width: int) -> list[str]:
    """Each line of `text` in one or more, none wider than `width` cells but for a single word."""
    return [part for line in text.split("\n") for part in _lines(line, width)]


def _lines(line: str, width: int) -> Iterator[str]:
    if width_in_cells(line) <= width:
        yield line
        return
    kept = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), line)
    indent = line[: len(line) - len(line.lstrip(" "))]
    now = ""
    for piece in _pieces(kept):
        if now.strip() and width_in_cells(now) + width_in_cells(piece) > width:
            yield _shown(now)
            now = indent + piece.lstrip(" ")
        else:
            now += piece
    yield _shown(now)


def _pieces(line: str) -> Iterator[str]:
    """Words with the blanks before them; Chinese may be broken behind each sign."""
    for found in _WORD.finditer(line):
        begin = 0
        word = found[0]
        for at in range(1, len(word)):
            if _may_break(word[at - 1], word[at]):
                yield word[begin:at]
                begin = at
        yield word[begin:]


def _may_break(before: str, behind: str) -> bool:
    if behind in _CLOSING or before in _OPENING or before == " ":
        return False
    return _is_wide(before) or _is_wide(behind)


def _shown(line: str) -> str:
    return line.replace(_KEPT, " ").rstrip(" ")


def width_in_cells(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(2 if _is_wide(char) else not unicodedata.combining(char) for char in text)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
