"""Names that somebody else's rules make alike, kept apart."""

from __future__ import annotations

from collections.abc import Iterable


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """In their order, each one once and none that is `taken`: `acc`, `acc_2`, `acc_3`."""
    found: list[str] = []
    used = set(taken)
    for name in names:
        free, count = name, 1
        while free in used:
            count += 1
            free = f"{name}_{count}"
        used.add(free)
        found.append(free)
    return found
