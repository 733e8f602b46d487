"""docs/json/: each document that a test has a verb print is held against the schema of its verb."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from json_schema import problems

from boxcar.laptop.common import documents

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "json"


@functools.cache
def schema(name: str) -> dict[str, Any] | None:
    """None for a name that tests have made up; that every verb has one is a test of its own."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def hold(document: Mapping[str, Any]) -> None:
    """Raises AssertionError for a document that its schema does not allow."""
    name = str(document["format"]).removeprefix("boxcar.").partition("/")[0]
    if (published := schema(name)) is not None:
        found = problems(published, document)
        assert not found, f"docs/json/{name}.json and what was printed differ: {found}"


@functools.cache
def hold_all() -> None:
    """From now on, in this process and those that it forks."""
    spelled = documents.as_text

    def held(document: Mapping[str, Any], **how: Any) -> str:
        text = spelled(document, **how)
        hold(json.loads(text))
        return text

    documents.as_text = held
