"""A file with one flipped bit, as it was before, where something proves what it was.

A check or a digest tells which of all single bits is the one: there is no second that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

# A digest is taken for each bit: of more than this it would take minutes.
MOST_BYTES = 64 * 1024


def turned_back(data: bytes, is_right: Callable[[bytes], bool]) -> bytes | None:
    """`data` with the one bit turned back that makes it right; None where no single one does."""
    if len(data) > MOST_BYTES:
        return None
    return next((whole for whole in with_one_bit_flipped(data) if is_right(whole)), None)


def with_one_bit_flipped(data: bytes) -> Iterator[bytes]:
    for place, byte in enumerate(data):
        for bit in range(8):
            yield b"%b%c%b" % (data[:place], byte ^ 1 << bit, data[place + 1 :])
