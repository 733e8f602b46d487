"""From which generators somebody draws, and what they held before.

Their own functions copy that into objects, which takes 9, 31 and 1 us: more than torch needs for a
batch of trivial items. Python's and NumPy's lie at one place in memory as long as the process
lives, from where their bytes are copied in 0.1 us each.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from typing import Any, NamedTuple

import torch

from boxcar.training.data.asked_states import ASKED
from boxcar.training.data.generators import NUMPY, PYTHON, TORCH, numpy

_VERSION = 3  # of Python's state
# A position and its words. Python begins with the position, NumPy ends with it.
_TWISTER = struct.Struct("=625I")
_Place = ctypes.c_char * _TWISTER.size
_KIND = "MT19937"  # in NumPy's words


class States(NamedTuple):
    """What the three hold at one moment, by their names. Equal: nobody has drawn in between."""

    python: tuple[bytes, float | None]
    numpy: bytes
    torch: bytes

    def moved(self, since: States) -> frozenset[str]:
        """Those from which somebody has drawn."""
        if self == since:
            return frozenset()
        return frozenset(n for n in self._fields if getattr(self, n) != getattr(since, n))


class Watch:
    """Tells from which generators somebody draws, and puts them back."""

    def __init__(self) -> None:
        self._python: Any = getattr(random.random, "__self__", None)
        self._of_python = _place_in(self._python)
        self._bits: object = None
        self._of_numpy: ctypes.Array[ctypes.c_char] | None = None
        # NumPy's words, and how often somebody had asked for its state or set it by then.
        self._without_normal = (b"", 0)

    def begin(self) -> States | None:
        """As they are now. None where draws cannot be told so: another Python or bit generator, or
        NumPy keeps a second normal number, which can be drawn unseen.
        """
        self._find_numpy()
        if self._of_python is None or (numpy is not None and self._of_numpy is None):
            return None
        now = self.now()
        if self._without_normal != (now.numpy, ASKED.count):
            if numpy is not None and numpy.random.get_state(legacy=False)["has_gauss"]:
                return None
            self._without_normal = now.numpy, ASKED.count
        return now

    def now(self) -> States:
        """The same, after a `begin` that could tell; 2 us."""
        assert self._of_python
        state = torch.default_generator.get_state()
        return States(
            (self._of_python.raw, self._python.gauss_next),
            self._of_numpy.raw if self._of_numpy else b"",
            ctypes.string_at(state.data_ptr(), state.nbytes),
        )

    def put_back(self, states: States, which: frozenset[str]) -> None:
        """These hold again what they did."""
        if PYTHON in which:
            held, second_normal = states.python
            position, *words = _TWISTER.unpack(held)
            random.setstate((_VERSION, (*words, position), second_normal))
        if TORCH in which:
            of_torch = torch.frombuffer(bytearray(states.torch), dtype=torch.uint8)
            torch.default_generator.set_state(of_torch)
        if NUMPY in which and numpy is not None:
            words = numpy.frombuffer(states.numpy, dtype=numpy.uint32)
            numpy.random.set_state((_KIND, words[:-1], int(words[-1])))
            self._without_normal = states.numpy, ASKED.count

    def _find_numpy(self) -> None:
        if numpy is None:
            return
        bits = numpy.random.get_bit_generator()
        if bits is not self._bits:
            self._bits, self._of_numpy = bits, _place_of(bits)


def _place_in(python: object) -> ctypes.Array[ctypes.c_char] | None:
    """Where its position and words lie: behind what every object begins with."""
    if sys.implementation.name != "cpython" or not isinstance(python, random.Random):
        return None
    place = _Place.from_address(id(python) + object.__basicsize__)
    position, *words = _TWISTER.unpack(place.raw)
    return place if python.getstate()[1] == (*words, position) else None


def _place_of(bits: Any) -> ctypes.Array[ctypes.c_char] | None:
    """Where NumPy's words and position lie, if they are of that kind."""
    if type(bits).__name__ != _KIND:
        return None
    place = _Place.from_address(bits.ctypes.state_address)
    *words, position = _TWISTER.unpack(place.raw)
    state = bits.state["state"]
    return place if (state["key"].tolist(), state["pos"]) == (words, position) else None
