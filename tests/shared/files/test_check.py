from __future__ import annotations

from flips import flipped
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.files import journal_chain
from boxcar.shared.files.journal_chain import Seal

SEAL = Seal(b',"check":"', b'"}')


@given(st.binary(), st.binary())
def test_what_was_sealed_fits_after_that_and_after_nothing_else(body: bytes, other: bytes) -> None:
    before = journal_chain.check_of(other)
    data = SEAL.put(body, before)
    assert SEAL.fits(data, before)
    assert SEAL.read(data) == journal_chain.check_of(before.encode() + body)
    assert not SEAL.fits(data, journal_chain.check_of(other + b"x"))


@given(st.binary(max_size=60))
def test_bytes_that_nobody_sealed_do_not_fit(data: bytes) -> None:
    assert not SEAL.fits(data)


def test_no_flipped_bit_is_taken_for_what_was_sealed() -> None:
    data = SEAL.put(b'{"cell":"c1_1"')
    assert not [bad for bad in flipped(data, 8 * len(data), seed=1) if SEAL.fits(bad)]


def test_the_check_of_pieces_is_that_of_the_whole() -> None:
    running = journal_chain.Running()
    running.add(b"one")
    assert running.add(b"two") == journal_chain.check_of(b"onetwo")
