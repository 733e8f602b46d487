"""The flags that a script's own `--help` names: argparse, click, typer, fire, absl and their kin.

Pure. A text that is no such list has no flags; what was printed around it does not matter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import Any

from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.source import UNKNOWN

_BOX = re.compile(r"[\u2500-\u257f]")  # rich draws them around
_ENTRY = re.compile(r"\s{0,10}(?:\*\s+)?(-{1,2}[A-Za-z\[].*)")
_WORDS = re.compile(r"\s*(?:positional )?arguments\b.*", re.I)
_WORD = re.compile(r"\s{1,8}(?:\*\s+)?([A-Za-z]\w*)(?:\s+(.*))?")
_NAME = re.compile(r"-{1,2}(?:\[no\])?[A-Za-z][\w.-]*")
_OF_ABSL = re.compile(r"--(\[no\])?[\w.]+: ")
_DEFAULT = re.compile(r"[\[(][^\[(]*default[:=]?\s+([^\])]+)|^\s*Default: (.+)$", re.I | re.M)
_REQUIRED = re.compile(r"[\[(]required\b", re.I)
_ENDS_AT = re.compile(r"[,;]\s+(?:type|required|env)\b.*", re.S)
_KIND = re.compile(r"\s*(?:TEXT|INTEGER|FLOAT|PATH|FILE|DIRECTORY|<(?!bool)\w+>)(?:\s|$)")
_IGNORED = ("-h", "--help", "--version", "--helpfull", "--install-completion", "--show-completion")


def flags(text: str) -> tuple[Flag, ...]:
    """In their order, each once; `line` is 0, because no source was read for them."""
    text = _BOX.sub(" ", text)
    demanded = frozenset(_demanded(text))
    found: dict[str, Flag] = {}
    for typed, said in _entries(text):
        flag = _flag(typed, said, demanded) if typed[0] == "-" else _positional(typed, said)
        if flag and flag.word not in _IGNORED:
            found.setdefault(flag.key, flag)
    return tuple(found.values())


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """What is typed, and what is said of it, also on the lines below."""
    typed, said, is_of_words = "", "", False
    for line in [*text.splitlines(), ""]:
        entry = _ENTRY.fullmatch(line)
        word = _WORD.fullmatch(line) if is_of_words else None
        if not (entry or word) and line.strip() and not _WORDS.fullmatch(line):
            said += f"\n{line}"
            continue
        if typed:
            yield typed, said
        typed, said = "", ""
        is_of_words = (is_of_words and bool(word)) or bool(_WORDS.fullmatch(line))
        if entry:
            cut = re.search(r"\s{2,}|\t", entry[1])
            typed, said = (
                (entry[1][: cut.start()], entry[1][cut.end() :]) if cut else (entry[1], "")
            )
        elif word:
            typed, said = word[1], word[2] or ""


def _positional(typed: str, said: str) -> Flag:
    return Flag((typed,), 0, _default(said), is_required=_default(said) is UNKNOWN)


def _flag(typed: str, said: str, demanded: Collection[str]) -> Flag | None:
    of_absl = _OF_ABSL.match(typed)
    names = _NAME.findall(of_absl[0] if of_absl else re.sub(r"\{[^}]*\}|<[^>]*>", "X", typed))
    names = [name.replace("[no]", "") for name in names]
    positive = tuple(name for name in names if not _negates(name, names))
    if not positive:
        return None
    is_valued = not of_absl[1] if of_absl else bool(_NAME.sub("", typed).strip(" ,/|"))
    return Flag(
        positive,
        0,
        _default(said),
        is_switch=not (is_valued or _KIND.match(said)),
        is_required=bool(_REQUIRED.search(said)) or any(name in demanded for name in names),
    )


def _negates(name: str, names: Collection[str]) -> bool:
    return name.startswith("--no") and f"--{name[4:].lstrip('-')}" in names


def _default(said: str) -> Any:
    found = _DEFAULT.search(said)
    if found is None:
        return UNKNOWN
    text = _ENDS_AT.sub("", found[1] or found[2]).strip(" '\"")
    try:
        return None if text == "null" else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _demanded(text: str) -> Iterator[str]:
    """The options that argparse's usage does not put into brackets."""
    usage = re.search(r"^usage:\s*(.*?)(?:\n\s*\n|\Z)", text, re.S | re.M)
    left, before = usage[1] if usage else "", ""
    while left != before:
        left, before = re.sub(r"[\[(][^\[\]()]*[\])]", " ", left), left
    yield from (name for name in _NAME.findall(left) if f" {name} " in f"{left} ")
