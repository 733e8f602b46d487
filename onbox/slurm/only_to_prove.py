"""Queues in which nothing is left but to load published artifacts: their agent was lost before.

Whoever starts there next loads them where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable

from boxcar.shared.files import queue_line
from boxcar.shared.paths import DurablePaths


def are_all(tier: DurablePaths, queues: Iterable[str]) -> bool:
    """Raises OSError, DamagedError."""
    return all(_is_one(tier, queue) for queue in set(queues))


def _is_one(tier: DurablePaths, queue: str) -> bool:
    try:
        lines = tier.queue(queue).read_bytes()
    except FileNotFoundError:
        return False
    cells = [cell.name for cell in queue_line.parse(queue_line.with_last_line(lines)).cells]
    return all(tier.manifest(cell).exists() for cell in cells) and not all(
        tier.receipt(cell).exists() for cell in cells
    )
