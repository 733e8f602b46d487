"""Where the placeholder of `resume` may stand in job.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable

from boxcar.shared import out_pattern

# The placeholder, and not the text {{resume}}.
_TAKES = re.compile(r"(?<!\{)(?:\{\{)*\{resume\}")


def misplaced(resume: str | None, words: Iterable[str]) -> str:
    """Why `{resume}` may not stand in these words or values; '' where it may, or is not there."""
    if resume is None or not out_pattern.is_pattern(resume):
        return ""
    if not any(_TAKES.search(word) for word in words):
        return ""
    return (
        f"takes {{resume}}, which is empty while nothing matches {resume}: write these words as "
        "resume_args, which are added only where there is a checkpoint"
    )
