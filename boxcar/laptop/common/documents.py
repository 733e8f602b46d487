"""What `--json` prints: of each verb a document whose first key says which, and in which version.

docs/json/VERB.json is the schema of each, and docs/json/error.json that of a verb that failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.common.text_layout import is_seen
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.codec import encode, finite

VERSION = 1
# What records call otherwise than documents do: a list of the document, in its rows the name of the
# record, and the one that all verbs have for it.
NAMES: dict[str, dict[str, dict[str, str]]] = {
    "audit": {"rows": {"reason": "because"}},
    "plan": {"cells": {"name": "cell"}, "candidates": {"reason": "because"}},
    "pull": {
        "cells": {"name": "cell", "word": "state", "why": "because"},
        "journals": {"name": "queue", "word": "state", "why": "because"},
    },
    "rehearse": {"cells": {"word": "state"}},
    "smoke": {"cells": {"word": "state", "why": "because"}},
}


def of_verb(verb: str, value: Any) -> dict[str, Any]:
    """What a verb found, as its document; dataclasses are objects, messages and commands text."""
    found = finite(encode(value, _spelled))
    for rows, names in NAMES.get(verb, {}).items():
        found[rows] = [_named(row, names) for row in found[rows]]
    return _headed(verb, found)


def of_error(verb: str, exit_code: int, messages: Sequence[Message]) -> dict[str, Any]:
    """Why a verb has no document of its own. `verb` is '' where none was typed that exists."""
    told = [
        {"text": one.text.strip(), "command": one.command and _spelled(one.command)}
        for one in messages
    ]
    return _headed("error", {"verb": verb, "exit_code": exit_code, "messages": told})


def as_text(
    document: Mapping[str, Any], *, is_line: bool = False, encoding: str | None = None
) -> str:
    """As it is printed: one line, or one for each field; with JSON's escapes where the stream is
    not known to take all characters.
    """
    indent, is_utf = None if is_line else 1, (encoding or "").lower().startswith("utf")
    text = json.dumps(document, indent=indent, ensure_ascii=not is_utf, allow_nan=False)
    # JSON leaves direction marks, 8-bit controls and half surrogate pairs as they are.
    return "".join(c if is_seen(c) else json.dumps(c)[1:-1] for c in text)


def _headed(name: str, found: dict[str, Any]) -> dict[str, Any]:
    head = {"format": f"boxcar.{name}/{VERSION}"}
    return head | found | head  # a field of that name does not take its place


def _named(row: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    renamed = {names.get(key, key): value for key, value in row.items()}
    if renamed.get("because") == "":
        renamed["because"] = None
    return renamed


def _spelled(value: object) -> str | None:
    """Messages and commands as text, by the program that was typed."""
    return value.typed() if isinstance(value, Message | Command) else None
