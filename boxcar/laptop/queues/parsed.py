"""A queue file's bytes as parsed before: the file here and the one on the durable tier are mostly
the same, and a look in every half minute finds them as they were.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from boxcar.shared.files import queue_line
from boxcar.shared.files.queue_line import Queue

# A queue file's bytes as what they say.
Parse = Callable[[bytes], Queue]


@functools.lru_cache(maxsize=1024)
def parsed(data: bytes) -> Queue:
    return queue_line.parse(data)
