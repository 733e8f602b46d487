"""What a box warns of, in the reader's language where the event says by fields what it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.shared.catalogue.sentence import Sentence

# The `what` of the event.
LATE_MIRROR = "mirror_late"


def text(data: Mapping[str, Any]) -> Sentence | str:
    """Of a `box.warning`'s data. Most warnings are the box's own words, in English."""
    if data.get("what") == LATE_MIRROR:
        return of_late_mirror(data)
    return str(data.get("text"))


def of_late_mirror(data: Mapping[str, Any]) -> Sentence:
    """`seconds` is what the box had; `mirrored_at` when the copy was made that is there."""
    name = "news.mirror_late" if data.get("mirrored_at") else "news.mirror_none"
    at = str(data.get("mirrored_at"))[:19].replace("T", " ")
    seconds = f"{float(data.get('seconds') or 0):g}"
    return Sentence(name, cell=str(data.get("cell")), seconds=seconds, at=at)
