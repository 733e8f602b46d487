"""What was launched when, beside the results: one line of JSON for each launch, only ever appended.

It says whether the smoke passes were asked for, which nothing else remembers, and where the run is:
a job whose candidates have changed since still means the boxes that it was launched on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import ResultPaths

FILE = "launches.jsonl"


def append(
    results: ResultPaths, profile: str, digest: str, queues: Sequence[str], *, is_smoked: bool
) -> None:
    """Add a launch of these queues with this release."""
    record = {
        "at": timestamp.utc_now(),
        "profile": profile,
        "release": digest,
        "queues": list(queues),
        "is_smoked": is_smoked,
    }
    atomic.make_folder(results.root)
    atomic.append(results.root / FILE, json.dumps(record).encode() + b"\n")


def profile_of(results: ResultPaths) -> str | None:
    """The profile that the run was last launched with; None where it never was."""
    try:
        lines = (results.root / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    whole = [line for line in lines[:-1] if line]  # the last one may be torn
    try:
        return str(json.loads(whole[-1])["profile"]) if whole else None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(
            f"{results.root / FILE}: its last line is not the record of a launch: {error}"
        ) from error
