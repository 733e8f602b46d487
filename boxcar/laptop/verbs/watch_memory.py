"""What `watch --once-if-changed` reported last, so that cron writes a mail only for news."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from boxcar.laptop.common.home import Home
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic

if TYPE_CHECKING:
    from pathlib import Path

    from boxcar.laptop.project.project import Project


def news(
    project: Project, standings: Mapping[tuple[object, ...], str], now: str, at_most_every_s: float
) -> list[str]:
    """The lines of what stands now and did not stand at the last report; [] where it is too soon.

    What is returned counts as reported. A memory that cannot be read makes everything news.
    """
    path = Home(project.root).reported(project.plan.run)
    told, at = _read(path)
    # A clock that was set back must not keep us silent until it is there again.
    if at is not None and at <= now and timestamp.seconds_between(at, now) < at_most_every_s:
        return []
    keys = {json.dumps(key): line for key, line in standings.items()}
    lines = [line for key, line in keys.items() if key not in told]
    if set(keys) != told:  # also what is over: when it comes back, it is news
        atomic.make_folder(path.parent)
        record = {"at": now if lines else at, "told": sorted(keys)}
        atomic.write_whole(path, json.dumps(record).encode())
    return lines


def _read(path: Path) -> tuple[set[str], str | None]:
    try:
        record = json.loads(path.read_bytes())
        timestamp.parse_utc(record["at"])
        return set(record["told"]), record["at"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return set(), None
