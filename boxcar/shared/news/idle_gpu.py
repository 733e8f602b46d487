"""When a GPU counts as idle while a cell runs: for the board, and for the news of its box."""

from __future__ import annotations

# The busiest card of the box counts.
IDLE_PERCENT = 10.0
IDLE_FOR_S = 20 * 60.0
