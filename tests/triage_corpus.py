"""Texts of failures with what is right for each: `=== ID CLASS [rc=N]`, then the text."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.triage.evidence import Cause, Evidence
from boxcar.shared.triage.judge import judge

DATA = Path(__file__).parent / "data" / "triage"
_HEAD = re.compile(r"^=== (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """`ids` and `courses`: each of them is right; PY and MOD stand for all of their family."""

    file: str
    ids: tuple[str, ...]
    courses: tuple[str, ...]
    rcs: frozenset[int]
    text: str

    @functools.cached_property
    def judged(self) -> Cause:
        """It is asked for by several tests, and takes its time."""
        return judge(Evidence(self.text, rcs=self.rcs))

    def is_named(self, id: str) -> bool:
        return id in self.ids or id.partition("-")[0] in {"PY", "MOD"} & {*self.ids}


@functools.cache
def cases(kind: str) -> list[Case]:
    found = []
    for path in sorted((DATA / kind).glob("*.txt")):
        parts = _HEAD.split(path.read_text("utf-8"))[1:]
        for head, text in zip(parts[::2], parts[1::2], strict=True):
            found.append(_case(path.name, head, text.strip("\n")))
    return found


def _case(file: str, head: str, text: str) -> Case:
    words = [word for word in head.split() if "=" not in word]
    rcs = frozenset(int(word[3:]) for word in head.split() if word.startswith("rc="))
    ids = tuple(id for word in (words[0], *words[2:]) for id in word.split("|"))
    return Case(file, ids, tuple(words[1].split("|")), rcs, text)
