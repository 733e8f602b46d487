"""The words of job.yaml's command: literal text, and placeholders such as `{cfg}`.

`{{` and `}}` are braces. The wrapper of a cell, `smoke` and `plan` all fill them by this grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boxcar.laptop.common.near import did_you_mean
from boxcar.shared.files.plan import Cell, Plan

# placeholder of job.yaml's command -> variable of run_one.sh
PLACEHOLDERS = {
    "cfg": "cfg",
    "task": "task",
    "epochs": "epochs",
    "name": "cell",
    "out": "out",
    "resume": "resume",
}
_PART = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])|(?P<text>[^{}]+)")


@dataclass(frozen=True)
class Placeholder:
    name: str


def parse_word(word: str) -> list[str | Placeholder]:
    """Split a word of the command into literal text and placeholders; `{{` and `}}` are braces.

    Raises ValueError for an unknown placeholder or a lone brace.
    """
    parts: list[str | Placeholder] = []
    for match in _PART.finditer(word):
        if match["lone"]:
            raise ValueError(
                f"{word!r} has a lone {match['lone']}; a brace itself is written twice"
            )
        if match["name"] is not None:
            parts.append(Placeholder(_known(match["name"])))
        else:
            text = match["text"] or match["brace"][0]
            before = parts.pop() if parts and isinstance(parts[-1], str) else ""
            parts.append(f"{before}{text}")
    return parts


def fill(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with each placeholder replaced; `values` has all that are in PLACEHOLDERS."""
    return [
        "".join(
            values[part.name] if isinstance(part, Placeholder) else part
            for part in parse_word(word)
        )
        for word in words
    ]


def values(plan: Plan, cell: Cell, out: str) -> dict[str, str]:
    """What a cell's placeholders stand for, with that folder as its {out}."""
    return {
        "cfg": cell.cfg,
        "task": cell.task,
        "epochs": str(cell.epochs),
        "name": cell.name,
        "out": out,
        "resume": f"{out}/{plan.resume}" if plan.resume else "",
    }


def _known(name: str) -> str:
    if name in PLACEHOLDERS:
        return name
    known = [f"{{{placeholder}}}" for placeholder in PLACEHOLDERS]
    near = did_you_mean(f"{{{name}}}", known)
    raise ValueError(
        f"unknown placeholder {{{name}}}{near}; known: {' '.join(known)}. "
        "A brace itself is written twice"
    )
