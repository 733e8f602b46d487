"""What a path or pattern below {out} may say, in `resume` and `artifacts` of job.yaml."""

from __future__ import annotations

from boxcar.shared import out_pattern


def refuse_odd(text: str) -> None:
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
