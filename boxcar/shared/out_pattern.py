"""A pattern of `resume` or `artifacts` of a job, which means files or folders below {out}.

In each part of the path `*` stands for any characters and `?` for one; nothing else is special. A
pattern that ends with `/` is of folders, any other of files. Without `*` and `?` it is plain.

What a killed save leaves is no match: its name begins with a dot, or has a part that says it, as
orbax' `300.orbax-checkpoint-tmp`. A pattern that spells such a part itself means it.
"""

from __future__ import annotations

import re

_WILD = re.compile(r"[*?]")
_UNFINISHED = re.compile(r"(^|[.\-_])(tmp|unfinished)([.\-_]|$)|\.part$", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+")


def is_pattern(resume: str) -> bool:
    return bool(_WILD.search(resume))


def is_of_folders(resume: str) -> bool:
    return resume.endswith("/")


def parts(resume: str) -> list[str]:
    return resume.removesuffix("/").split("/")


def matches(resume: str, name: str) -> bool:
    """Whether `resume` means what has this name below {out}, if it is of the right kind."""
    names, wanted = name.split("/"), parts(resume)
    return len(names) == len(wanted) and all(map(part_matches, wanted, names))


def part_matches(part: str, name: str) -> bool:
    """The same of one part of each."""
    if not is_pattern(part):
        return part == name
    says_dot = part.startswith(".")
    is_hidden = name.startswith(".") and not says_dot  # as a shell has it
    is_unfinished = _UNFINISHED.search(name) and not (says_dot or _UNFINISHED.search(part))
    if is_hidden or is_unfinished or not name.isprintable():
        return False
    wild = {"*": ".*", "?": "."}
    return bool(re.fullmatch("".join(wild.get(char, re.escape(char)) for char in part), name))


def numbers(name: str) -> tuple[int, ...]:
    """Those in a name, in their order: what is compared to see which match is newer."""
    return tuple(map(int, _NUMBER.findall(name)))
