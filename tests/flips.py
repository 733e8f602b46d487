"""One bit of a file that is not as it was written, for the tests: which one follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator


def flipped(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`data` as often as `count` says, each time with another bit flipped."""
    for bit in random.Random(seed).sample(range(8 * len(data)), count):
        place, number = divmod(bit, 8)
        yield data[:place] + bytes([data[place] ^ 1 << number]) + data[place + 1 :]
