"""Events by cell, kept as bytes: for as long as a run, an Event of each cell takes eight times as
much.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from boxcar.shared.files.journal_chain import Event


class PackedEvents(Mapping[str, Event]):
    def __init__(self, packed: Mapping[str, bytes] | None = None) -> None:
        self._packed = dict(packed or {})

    def put(self, cell: str, event: Event) -> None:
        self.share(cell, _pack(event))

    def share(self, cell: str, packed: bytes) -> None:
        """As `packed` of another one of these gives it."""
        self._packed[cell] = packed

    def drop(self, cell: str) -> None:
        self._packed.pop(cell, None)

    def packed(self, cell: str) -> bytes:
        return self._packed[cell]

    def copy(self) -> PackedEvents:
        return PackedEvents(self._packed)

    def __getitem__(self, cell: str) -> Event:
        return Event(*json.loads(self._packed[cell]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def _pack(event: Event) -> bytes:
    fields = [event.seq, event.id, event.at, event.type, event.data, event.extra]
    return json.dumps(fields, separators=(",", ":")).encode()
