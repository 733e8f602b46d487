from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import serialization

from boxcar.training.checkpoint import archive_sum
from boxcar.training.checkpoint.archive_sum import ArchiveSum

LARGE = torch.rand(600_000)
OF_TWO_SIZES = {"weights": LARGE, "more": torch.rand(300_000), "bias": torch.rand(7)}


class Pieces:
    """What torch writes to: a file, as the calls in which it came."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: Any) -> int:
        self.written.append(bytes(data))
        return len(self.written[-1])

    def flush(self) -> None: ...


def of_torch(value: Any, **how: Any) -> list[bytes]:
    file = Pieces()
    torch.save(value, file, **how)  # type: ignore[arg-type]
    return file.written


def summed(pieces: list[bytes]) -> int | None:
    found = ArchiveSum()
    for piece in pieces:
        found.add(memoryview(piece))
    return found.crc32


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    sizes: list[int] = []
    real = zlib.crc32

    def counted(data: bytes, before: int = 0) -> int:
        sizes.append(len(data))
        return real(data, before)

    monkeypatch.setattr(archive_sum.zlib, "crc32", counted)
    yield sizes
    monkeypatch.undo()


def test_no_large_part_of_what_torch_writes_is_read(bytes_read: list[int]) -> None:
    pieces = of_torch(OF_TWO_SIZES)
    found = summed(pieces)
    assert max(bytes_read) < archive_sum._LARGE_BYTES < LARGE.nbytes
    assert found == zlib.crc32(b"".join(pieces))


def test_archives_one_after_another_and_other_bytes_between_them_are_summed() -> None:
    large = LARGE.numpy().tobytes()
    pieces = [b"before", large, *of_torch(LARGE), b"between", *of_torch(OF_TWO_SIZES), b"", b"end"]
    assert summed(pieces) == zlib.crc32(b"".join(pieces))


@pytest.mark.parametrize("size_bytes", [0, 1, 2**20 - 1, 2**20, 2**20 + 13, 2**22])
def test_two_sums_are_put_together_as_if_all_had_been_read(size_bytes: int) -> None:
    before, after = b"what was before", bytes(range(256)) * (size_bytes // 256 + 1)
    after = after[:size_bytes]
    together = archive_sum._product(archive_sum._power(size_bytes), zlib.crc32(before))
    assert together ^ zlib.crc32(after) == zlib.crc32(before + after)


@pytest.fixture
def without_sums() -> Iterator[None]:
    if not hasattr(serialization, "set_crc32_options"):
        pytest.skip("needs torch 2.6, which can be told to sum nothing")
    serialization.set_crc32_options(False)
    yield
    serialization.set_crc32_options(True)


@pytest.mark.usefixtures("without_sums")
def test_a_torch_that_was_told_to_sum_nothing_is_not_believed() -> None:
    pieces = of_torch(OF_TWO_SIZES)
    assert summed(pieces) == zlib.crc32(b"".join(pieces))


def test_what_torch_says_is_not_believed_where_it_was_wrong_before() -> None:
    pieces = of_torch(LARGE)
    wrong = [_with_wrong_sum(piece) for piece in pieces]
    assert wrong != pieces
    assert summed(wrong) == zlib.crc32(b"".join(wrong))


def _with_wrong_sum(piece: bytes) -> bytes:
    if not piece.startswith(b"PK\x07\x08"):
        return piece
    return piece[:4] + bytes([piece[4] ^ 1]) + piece[5:]


def _around_large(change: Any) -> list[bytes]:
    pieces = of_torch(LARGE)
    [large] = [at for at, piece in enumerate(pieces) if len(piece) == LARGE.nbytes]
    change(pieces, large + 1)
    return pieces


def _drop(pieces: list[bytes], at: int) -> None:
    del pieces[at]


def _of_another_size(pieces: list[bytes], at: int) -> None:
    pieces[at] = pieces[at][:12] + b"\x01\0\0\0"


def _end(pieces: list[bytes], at: int) -> None:
    del pieces[at:]


@pytest.mark.parametrize("change", [_drop, _of_another_size, _end])
def test_a_large_part_of_which_torch_says_nothing_has_to_be_read(change: Any) -> None:
    assert summed(_around_large(change)) is None


def test_what_was_not_known_once_stays_so() -> None:
    pieces = list(itertools.chain(_around_large(_drop), of_torch(LARGE)))
    assert summed(pieces) is None


def test_a_file_of_more_than_four_gib_says_sizes_in_64_bits() -> None:
    size_bytes = 5 * 2**30
    told = b"PK\x07\x08" + b"\1\2\3\4" + size_bytes.to_bytes(8, "little") * 2
    assert archive_sum._descriptor(memoryview(told)) == (0x04030201, size_bytes)
