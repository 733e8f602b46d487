"""Events by cell, kept as bytes for as long as a run: an Event of each cell takes twenty times as
much. Each is spelled by what it has that the first one had not.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator, Mapping

from boxcar.shared.files.journal_chain import Event

_LEVEL, _WINDOW, _MEMORY = 6, -12, 5


class Packing:
    """What is packed by one can be unpacked by it alone."""

    def __init__(self) -> None:
        self._like = b""

    def pack(self, event: Event) -> bytes:
        fields = [event.seq, event.id, event.at, event.type, event.data, event.extra]
        spelled = json.dumps(fields, separators=(",", ":")).encode()
        self._like = self._like or spelled
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=self._like)
        return packer.compress(spelled) + packer.flush()

    def unpack(self, packed: bytes) -> Event:
        unpacker = zlib.decompressobj(_WINDOW, zdict=self._like)
        return Event(*json.loads(unpacker.decompress(packed) + unpacker.flush()))


class PackedEvents(Mapping[str, Event]):
    def __init__(self, packing: Packing, packed: Mapping[str, bytes] | None = None) -> None:
        self._packing = packing
        self._packed = dict(packed or {})

    def put(self, cell: str, event: Event) -> None:
        self.share(cell, self._packing.pack(event))

    def share(self, cell: str, packed: bytes) -> None:
        """As `packed` of another one with the same packing gives it."""
        self._packed[sys.intern(cell)] = packed

    def drop(self, cell: str) -> None:
        self._packed.pop(cell, None)

    def packed(self, cell: str) -> bytes:
        return self._packed[cell]

    def copy(self) -> PackedEvents:
        return PackedEvents(self._packing, self._packed)

    def __getitem__(self, cell: str) -> Event:
        return self._packing.unpack(self._packed[cell])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
