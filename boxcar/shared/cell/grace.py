"""How long a script that is told to leave gets to save: a large checkpoint takes its time."""

from __future__ import annotations

GRACE_S = 60.0
