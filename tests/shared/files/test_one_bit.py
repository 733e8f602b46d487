from __future__ import annotations

from flips import flipped

from boxcar.shared.disk import digest
from boxcar.shared.files.one_bit import MOST_BYTES, turned_back

DATA = b'{"format": "boxcar.manifest/1", "files": []}\n'


def is_right(data: bytes) -> bool:
    return digest.of_bytes(data) == digest.of_bytes(DATA)


def test_each_flipped_bit_is_turned_back() -> None:
    for bad in flipped(DATA, 100, seed=1):
        assert turned_back(bad, is_right) == DATA


def test_of_two_flipped_bits_nothing_is_guessed() -> None:
    assert turned_back(DATA.replace(b"manifest", b"nanifesu"), is_right) is None


def test_what_is_too_large_is_left_alone() -> None:
    assert turned_back(bytes(MOST_BYTES + 1), lambda data: True) is None
