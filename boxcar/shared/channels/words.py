"""A text as the services take it: a title, and no longer than they allow."""

from __future__ import annotations

_CUT = "…"


def title(text: str, longest: int) -> str:
    """The first line, in `longest` characters."""
    line = text.split("\n", maxsplit=1)[0]
    return line if len(line) <= longest else line[: longest - 1] + _CUT


def within(text: str, size_bytes: int) -> str:
    """The text in so many bytes of UTF-8; what was cut ends in three dots."""
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair, from some log
    data = text.encode()
    if len(data) <= size_bytes:
        return text
    return data[: size_bytes - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
