"""Whether what would be shipped is still code, or a data set that nobody meant to send. Pure.

Every release is a whole copy: sent, read back and compared on the durable tier, and staged on each
box. On rented tiers inodes run out first (200,000 are usual), and ten releases of a run are nothing
rare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from boxcar.laptop.common.units import size

MOST_BYTES = 200 * 10**6
MOST_FILES = 20_000
# So many names are enough to say where they lie; a million are never looked at one by one.
MOST_LOOKED_AT = 2 * MOST_FILES
_NAMED = 3


def size_problem(sizes_bytes: Sequence[tuple[str, int]]) -> str:
    """Why these files, by name and size, are too much, with the largest parts; '' where not."""
    count, total_bytes = len(sizes_bytes), sum(size_bytes for _, size_bytes in sizes_bytes)
    if count <= MOST_FILES and total_bytes <= MOST_BYTES:
        return ""
    if count > MOST_FILES:
        many = f"{MOST_LOOKED_AT} files or more" if count >= MOST_LOOKED_AT else f"{count} files"
        parts = _folders([(name, 1) for name, _ in sizes_bytes])
        named = ", ".join(f"{name} ({files} files)" for name, files in parts)
        return f"{many} would be shipped as code; the limit is {MOST_FILES}: {named}"
    parts = [*_folders(sizes_bytes), *Counter(dict(sizes_bytes)).most_common(_NAMED)]
    named = ", ".join(f"{name} ({size(size_bytes)})" for name, size_bytes in dict(parts).items())
    return (
        f"{size(total_bytes)} would be shipped as code; the limit is {size(MOST_BYTES)}. "
        f"The largest folders and files: {named}"
    )


def _folders(amounts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The folders, two levels deep, that hold the most. What lies at the top is in none."""
    totals: Counter[str] = Counter()
    for name, amount in amounts:
        folders = name.split("/")[:-1][:2]
        totals["/".join([*folders, ""]) if folders else "./"] += amount
    return totals.most_common(_NAMED)
