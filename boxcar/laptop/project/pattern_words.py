"""What a path or pattern below {out} may say, in `resume` and `artifacts` of job.yaml, and where
the placeholder {resume} may stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from boxcar.shared import out_pattern

# The placeholder, and not the text {{resume}}.
_TAKES = re.compile(r"(?<!\{)(?:\{\{)*\{resume\}")


def refuse_odd_pattern(text: str) -> None:
    """Raises ValueError for what nothing could match, whatever a script saves."""
    if "{" in text or "}" in text:
        raise ValueError(
            f"{text!r} takes no placeholder: it is below each cell's own {{out}}. What changes "
            "from one save to the next is a *, such as checkpoints/step_*.pt"
        )
    if "**" in text:
        raise ValueError(
            f"{text!r} has '**': a * stands for characters of one name; write */ for each folder"
        )
    if out_pattern.is_pattern(text) and "[" in text:
        raise ValueError(f"{text!r} has a '[': only * and ? stand for something else")


def misplaced_pattern(resume: str | None, words: Iterable[str]) -> str:
    """Why `{resume}` may not stand in these words or values; '' where it may, or is not there."""
    if resume is None or not out_pattern.is_pattern(resume):
        return ""
    if not any(_TAKES.search(word) for word in words):
        return ""
    return (
        f"takes {{resume}}, which is empty while nothing matches {resume}: write these words as "
        "resume_args, which are added only where there is a checkpoint"
    )
