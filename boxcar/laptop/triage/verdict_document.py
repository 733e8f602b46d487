"""A verdict on a failure as JSON: what it is, its evidence, what follows, what to do and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.laptop.triage.advice import Advice
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.triage.cause import Quote


def verdict_document(found: Advice, quotes: Sequence[Quote]) -> dict[str, Any]:
    course = found.course.value if found.course else None
    return {
        "id": found.id or None,
        "class": course,
        "words": str(found.words),
        "evidence": [{"line": one.line, "text": one.text} for one in quotes],
        "follows": str(Sentence(f"triage.follows.{course}")) if course else None,
        "todo": str(found.todo) if found.todo else None,
        "type": found.types.typed("invoke"),
        "ladder": [str(step) for step in found.ladder],
        "more": found.link,
    }
