"""The CRC-32 of a file that torch writes, with no large part of it read for that.

torch.save sums each part of its archive itself and writes the sum behind the part (zip calls it the
data descriptor). The sum of the whole file follows from those of its pieces. What torch says of a
large part is believed only where what it said of the part before it was right.
"""

from __future__ import annotations

import functools
import struct
import zlib

# Reading less takes no longer than putting two sums together.
_LARGE_BYTES = 1024 * 1024
_MAGIC = b"PK\x07\x08"
# After the magic: the sum, the size as stored, the size; 64 bits each for what 32 do not hold.
_DESCRIPTORS = {16: struct.Struct("<4xIII"), 24: struct.Struct("<4xIQQ")}
# CRC-32's polynomial, the lowest power at the highest bit.
_POLYNOMIAL = 0xEDB88320
_ONE, _EIGHTH_POWER = 1 << 31, 1 << 23


class ArchiveSum:
    def __init__(self) -> None:
        self._sum = 0
        self._part = (0, 0)  # sum and size of the last piece
        self._unread_bytes = 0
        self._is_torch_right, self._is_known = False, True

    @property
    def crc32(self) -> int | None:
        """None where torch did not say what it should have: the file has to be read."""
        return self._sum if self._is_known and not self._unread_bytes else None

    def add(self, piece: memoryview) -> None:
        """The next bytes of the file, in the calls in which torch writes them."""
        self._take_descriptor(_descriptor(piece))
        if len(piece) < _LARGE_BYTES:
            self._part = zlib.crc32(piece), len(piece)
            self._sum = zlib.crc32(piece, self._sum)
        elif self._is_torch_right:
            self._unread_bytes = len(piece)
        else:
            self._append(zlib.crc32(piece), len(piece))

    def _take_descriptor(self, told: tuple[int, int] | None) -> None:
        if self._unread_bytes:
            self._is_known &= told is not None and told[1] == self._unread_bytes
            self._append(*(told or self._part))
            self._unread_bytes = 0
        elif told is not None:
            self._is_torch_right = told == self._part

    def _append(self, crc32: int, size_bytes: int) -> None:
        self._part = crc32, size_bytes
        self._sum = _product(_power(size_bytes), self._sum) ^ crc32


def _descriptor(piece: memoryview) -> tuple[int, int] | None:
    """What it says of the part before it: the sum, and the size in bytes."""
    if len(piece) not in _DESCRIPTORS or piece[:4] != _MAGIC:
        return None
    crc32, _, size_bytes = _DESCRIPTORS[len(piece)].unpack(piece)
    return crc32, size_bytes


@functools.lru_cache(maxsize=256)  # tensors of a model have few different sizes
def _power(size_bytes: int) -> int:
    """x to the power of so many bits."""
    found, square = _ONE, _EIGHTH_POWER
    while size_bytes:
        if size_bytes & 1:
            found = _product(found, square)
        square = _product(square, square)
        size_bytes >>= 1
    return found


def _product(left: int, right: int) -> int:
    """Of two polynomials over bits, modulo CRC-32's."""
    found = 0
    while left:
        if left & _ONE:
            found ^= right
        left = left << 1 & 0xFFFFFFFF
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return found
