"""An event as it travels to a webhook: `{"type", "timestamp", "data"}`."""

from __future__ import annotations

# A body stays under it, so that no endpoint has a reason to refuse one for its size.
BODY_BYTES = 20_000
