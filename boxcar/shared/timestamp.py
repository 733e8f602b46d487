"""Times as they stand in files: UTC, ISO 8601 with milliseconds, ending in Z."""

from __future__ import annotations

from datetime import datetime, timezone


def utc_now() -> str:
    """The wall clock now. For people and files; durations are taken from a monotonic clock."""
    return utc(datetime.now(timezone.utc))


def utc(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_utc(text: str) -> datetime:
    """The inverse of `utc`; raises ValueError."""
    if not text.endswith("Z") or "T" not in text:
        raise ValueError(f"{text!r} is not a UTC time that ends in Z")
    return datetime.fromisoformat(text[:-1] + "+00:00")


def seconds_between(earlier: str, later: str, ahead_s: float = 0.0) -> float:
    """Seconds from one to the other, never negative: a clock that was set back reads as zero.

    `ahead_s` is by how much the clock that said `earlier` is ahead of the one that said `later`.
    """
    return max(0.0, (parse_utc(later) - parse_utc(earlier)).total_seconds() + ahead_s)
