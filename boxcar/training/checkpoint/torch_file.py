"""A new file that torch writes: on the disk when it ends, most of it long before.

So the fsync at its end finds little left to do.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator

from boxcar.shared.disk.sink import Sink

# So few that what was summed is still near the processor when it is written.
_BLOCK_BYTES = 1024 * 1024


class TorchFile:
    """What torch.save and DCP ask of a file. Keeps the OSError that torch turns into another."""

    def __init__(self, fd: int, *, is_summed: bool) -> None:
        self._sink, self._is_summed = Sink(fd), is_summed
        self.size_bytes = self.crc32 = 0
        self.error: OSError | None = None

    def write(self, data: memoryview) -> int:
        view = memoryview(data).cast("B")
        try:
            self._write(view)
        except OSError as error:
            self.error = error
            raise
        self.size_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """torch asks for it; nothing is buffered here."""

    def close(self) -> None:
        """DCP asks for it; `created` does it."""

    def _write(self, view: memoryview) -> None:
        if not self._is_summed:
            self._sink.write(view)
            return
        for start in range(0, len(view), _BLOCK_BYTES):
            block = view[start : start + _BLOCK_BYTES]
            self.crc32 = zlib.crc32(block, self.crc32)
            self._sink.write(block)


@contextlib.contextmanager
def created(path: str | os.PathLike[str], *, is_summed: bool = False) -> Iterator[TorchFile]:
    """For the body to write; its bytes are on the disk afterwards. `is_summed`: with its crc32.

    Raises OSError, also where torch made another error of it.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    file = TorchFile(fd, is_summed=is_summed)
    try:
        yield file
        os.fsync(fd)
    except BaseException:
        if file.error is not None:
            raise file.error from None
        raise
    finally:
        os.close(fd)
