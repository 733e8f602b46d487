"""How far the copy of a result is: told by the thread that settles, read by the agent's loop."""

from __future__ import annotations

from boxcar.shared import timestamp
from boxcar.shared.disk.checked_copy import OnChunk
from boxcar.shared.files.heartbeat import Copying


class CopySoFar:
    def __init__(self) -> None:
        self.now: Copying | None = None

    def begin(self, cell: str, size_bytes: int) -> OnChunk:
        """A result of so many bytes is copied from now on; what is to be told of each part of it,
        once when it is written and once when it is read back.
        """
        since, total_bytes, done_bytes = timestamp.utc_now(), 2 * size_bytes, 0

        def on_chunk(part_bytes: int) -> None:
            nonlocal done_bytes
            # A log may have grown meanwhile.
            done_bytes = min(total_bytes, done_bytes + part_bytes)
            self.now = Copying(cell, since, done_bytes, total_bytes)

        on_chunk(0)
        return on_chunk

    def end(self) -> None:
        self.now = None
