"""Whether an attempt has left a checkpoint: one that is whole, and newer than its begin."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from boxcar.shared import resume_match, timestamp
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files.attempt import Done

# Of a shell: what is above it is a signal.
_OF_SIGNALS = 128


def has_saved(out: Path, resume: str | None, done: Done) -> bool:
    """`resume` is the job's. False too where it names none, or nobody can look."""
    if resume is None:
        return False
    began_ns = int(timestamp.parse_utc(done.started_at).timestamp() * 1e9)
    # Who left by itself had time to end what it wrote, so that no folder needs to be a minute old.
    at_ns = sys.maxsize if 0 <= done.rc <= _OF_SIGNALS else time.time_ns()
    try:
        found = resume_match.look(out, resume)
        return any(seen.mtime_ns >= began_ns and seen.is_whole(at_ns) for seen in found)
    except (BoxcarError, OSError):
        return False
