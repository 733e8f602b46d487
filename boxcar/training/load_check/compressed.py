"""A pickle that was compressed as a whole, as `joblib.dump(compress=3)` does: read as what it was.

By its first bytes, as joblib does; none of them begins a pickle.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def opened_pickle(path: Path) -> Iterator[IO[bytes]]:
    """The file, or what it holds compressed.

    Raises what its library raises of damaged bytes, ImportError where that library is missing.
    """
    opener = _opener(path)
    with path.open("rb") as raw:
        if opener is None:
            yield raw
        else:
            with opener(raw) as file:
                yield file


def check_to_the_end(path: Path, file: IO[bytes]) -> None:
    """Only at its end does a compressor say whether each bit is as it was written."""
    if _opener(path):
        while file.read(_CHUNK_BYTES):
            pass


def _opener(path: Path) -> Callable[[IO[bytes]], Any] | None:
    with path.open("rb") as file:
        head = file.read(8)
    return next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)


class _Zlib(io.RawIOBase):
    """Python has a file of this kind for each compressor but zlib."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._inflater = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflater.eof:
            data = self._inflater.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            found = self._inflater.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not data:
                raise EOFError("the end of its compressed data is missing")
        return 0


def _of_zlib(file: IO[bytes]) -> Any:
    return io.BufferedReader(_Zlib(file), _CHUNK_BYTES)


def _of_lz4(file: IO[bytes]) -> Any:
    from lz4 import frame

    return frame.open(file)


_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x5d\x00": lzma.open,
    b"\x78": _of_zlib,
    b"\x04\x22\x4d\x18": _of_lz4,
}
