"""A new file that torch writes: on the disk when it ends, most of it long before.

So the fsync at its end finds little left to do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from boxcar.shared.disk.sink import Sink


class TorchFile:
    """What torch.save and DCP ask of a file. Keeps the OSError that torch turns into another."""

    def __init__(self, fd: int, on_piece: Callable[[memoryview], None]) -> None:
        self._sink, self._on_piece = Sink(fd), on_piece
        self.size_bytes = 0
        self.error: OSError | None = None

    def write(self, data: memoryview) -> int:
        view = memoryview(data).cast("B")
        try:
            self._sink.write(view)
        except OSError as error:
            self.error = error
            raise
        self.size_bytes += len(view)
        self._on_piece(view)
        return len(view)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """torch asks for it; nothing is buffered here."""

    def close(self) -> None:
        """DCP asks for it; `created` does it."""


@contextlib.contextmanager
def create_torch_file(
    path: str | os.PathLike[str], on_piece: Callable[[memoryview], None] = lambda _: None
) -> Iterator[TorchFile]:
    """For the body to write; its bytes are on the disk afterwards. `on_piece` gets what is written.

    Raises OSError, also where torch made another error of it.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    file = TorchFile(fd, on_piece)
    try:
        yield file
        os.fsync(fd)
    except BaseException:
        if file.error is not None:
            raise file.error from None
        raise
    finally:
        os.close(fd)
