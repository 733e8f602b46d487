"""Times as they stand in files: UTC, ISO 8601 with milliseconds, ending in Z."""

from __future__ import annotations

import time

from boxcar.shared.sentence import _

# Not typing's, and datetime is imported late: an attempt's wrapper needs no more than the time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# What reads a time, once it was needed: a journal has half a million.
_from_iso: list[Callable[[str], datetime]] = []


def utc_now() -> str:
    """The wall clock now. For people and files; durations are taken from a monotonic clock."""
    now_s, now_ms = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now_s))}.{now_ms:03}Z"


def utc(moment: datetime) -> str:
    from datetime import timezone

    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_utc(text: str) -> datetime:
    """The inverse of `utc`; raises ValueError."""
    if not text.endswith("Z") or "T" not in text:
        raise ValueError(_("{text!r} is not a UTC time that ends in Z", text=text))
    if not _from_iso:
        from datetime import datetime

        _from_iso.append(datetime.fromisoformat)
    return _from_iso[0](text[:-1] + "+00:00")


def after(earlier: str, seconds: float) -> str:
    from datetime import timedelta

    return utc(parse_utc(earlier) + timedelta(seconds=seconds))


def seconds_between(earlier: str, later: str, ahead_s: float = 0.0) -> float:
    """Seconds from one to the other, never negative: a clock that was set back reads as zero.

    `ahead_s` is by how much the clock that said `earlier` is ahead of the one that said `later`.
    """
    return max(0.0, (parse_utc(later) - parse_utc(earlier)).total_seconds() + ahead_s)
