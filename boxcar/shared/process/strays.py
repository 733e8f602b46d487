"""Declared files that a script wrote somewhere else: beside its code, and not into {out}."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.shared.artifacts import resume_match
from boxcar.shared.disk.proven_folder import shown

# Of a data set that a script unpacked, only so much is looked through for one name.
_MOST_SEARCHED = 10_000


def find(folder: Path, names: Iterable[str], wanted: Sequence[str]) -> dict[str, str]:
    """Which of the wanted files, or patterns, is among these paths below `folder`, and where.

    At its own path, else anywhere under its last name. The places are as people read them.
    """
    found: dict[str, str] = {}
    for path in itertools.islice(_all(folder, names), _MOST_SEARCHED):
        name = path.rpartition("/")[2]
        for one in wanted:
            is_named_so = resume_match.part_matches(resume_match.parts(one)[-1], name)
            if resume_match.matches(one, path) or (is_named_so and one not in found):
                found[one] = shown(path)
    return found


def is_of(name: str, wanted: Sequence[str]) -> bool:
    """Whether this path is one of the wanted ones, or lies in a folder that is."""
    steps = name.rstrip("/").split("/")
    heads = ["/".join(steps[:count]) for count in range(1, len(steps) + 1)]
    return any(resume_match.matches(one, head) for one in wanted for head in heads)


def _all(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """These paths, and all below them; what cannot be looked into is left out."""
    for name in names:
        yield name.rstrip("/")
        for at, folders, files in os.walk(folder / name):
            head = Path(at).relative_to(folder)
            yield from ((head / below).as_posix() for below in (*files, *folders))
