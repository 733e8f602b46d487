"""Numbers as people read them."""

from __future__ import annotations


def size(size_bytes: int) -> str:
    """Bytes: 999 B, 1.5 MB."""
    number, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def duration(seconds: float) -> str:
    """Seconds: 41s, 1m23s, 2h05m."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def about(seconds: float) -> str:
    """Seconds where the column is narrow: 41s, 12m, 2h05m, 3d04h."""
    whole = int(seconds)
    if whole < 60 or 3600 <= whole < 86_400:
        return duration(whole)
    if whole < 3600:
        return f"{whole // 60}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def count(number: int) -> str:
    """Steps, epochs: 9999, 12k, 1,500k."""
    return f"{number / 1000:,.0f}k" if number >= 10_000 else str(number)


def four_digits(number: object) -> str:
    """A measured number: 0.9123, 1.235e-05."""
    return f"{number:.4g}"
