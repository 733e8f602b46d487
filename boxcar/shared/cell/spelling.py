"""The one spelling of names and paths: whoever asks whether two are the same compares this.

A file is opened under the name that it is stored by, `stored_names`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable


def nfc(text: str) -> str:
    """A Mac may store `ü` as two characters: one form for all that is compared."""
    return unicodedata.normalize("NFC", text)


@functools.lru_cache(maxsize=4096)  # the lines of a queue mostly name few configs
def config_path(text: str) -> str:
    """The one spelling of a config's path: in NFC, without `.` and without empty parts."""
    return "/".join(part for part in nfc(text).split("/") if part not in ("", "."))


def stored_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of files by their one spelling. Two of one spelling differ only in their form."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(config_path(name), []).append(name)
    return found


def same_name_key(name: str) -> str:
    """Two names with one key are one folder on some file system (macOS folds case)."""
    return nfc(name).casefold()


def is_one_edit(one: str, other: str) -> bool:
    """Whether one letter was left out, put in or mistyped."""
    short, long = sorted((one, other), key=len)
    if short == long or len(long) - len(short) > 1:
        return False
    same = (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b)
    at = next(same, len(short))
    return long[at + 1 :] in (short[at:], short[at + 1 :])
