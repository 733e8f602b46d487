"""Which releases were pushed to a durable tier, the newest last. A push has its box write it.

Digests have no order. An agent whose own release lacks the config of a line looks here.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

_MOST_KEPT = 100


@dataclass(frozen=True)
class Newest:
    FORMAT: ClassVar[str] = "newest"
    VERSION: ClassVar[int] = 1

    releases: tuple[str, ...]
    at: str
    extra: dict[str, Any] = field(default_factory=dict)


def releases(path: Path) -> tuple[str, ...]:
    """The digests, the newest last; none before the first push. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    return codec.from_document(Newest, data, str(path)).releases


def with_newest(before: tuple[str, ...], digest: str) -> tuple[str, ...]:
    """One that is pushed again is the newest again."""
    return (*(other for other in before if other != digest), digest)[-_MOST_KEPT:]
