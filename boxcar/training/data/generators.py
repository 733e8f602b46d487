"""The generators of python, NumPy and torch (the CPU's): seeded, put back, and watched for draws.

Their own functions copy what they hold into objects, which takes 9, 31 and 1 us: more than torch
needs for a batch of trivial items. Python's and NumPy's lie at one place in memory as long as the
process lives, from where their bytes are copied in 0.1 us each.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import struct
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import torch

# Imported before the first sample, not when a dataset does: that one would draw unseeded numbers.
numpy: ModuleType | None
try:
    import numpy
except ImportError:  # torch works without it, and then nobody draws from it
    numpy = None

PYTHON, NUMPY, TORCH = "python", "numpy", "torch"
ALL = frozenset((PYTHON, NUMPY, TORCH))

_VERSION = 3  # of Python's state
# A position and its words. Python begins with the position, NumPy ends with it.
_TWISTER = struct.Struct("=625I")
_Place = ctypes.c_char * _TWISTER.size
_KIND = "MT19937"  # in NumPy's words
_ASK_TORCH = ("initial_seed", "get_rng_state")


def seed(value: int, which: frozenset[str] = ALL) -> None:
    """Seed these; all three take 7 us on a 3 GHz core."""
    if PYTHON in which:
        random.seed(value)
    if TORCH in which:
        # Not torch.manual_seed: it reseeds the GPUs too, and takes 130 us.
        torch.default_generator.manual_seed(value)
    if NUMPY in which and numpy is not None:
        numpy.random.seed(value & 0xFFFFFFFF)  # an array of 64 bits would take 8 us


@contextlib.contextmanager
def own_draws() -> Iterator[None]:
    """Draws inside leave no trace outside: all three generators get their state back."""
    of_python, of_torch = random.getstate(), torch.default_generator.get_state()
    of_numpy = None if numpy is None else numpy.random.get_state(legacy=False)
    try:
        yield
    finally:
        random.setstate(of_python)
        torch.default_generator.set_state(of_torch)
        if numpy is not None:
            numpy.random.set_state(of_numpy)


@contextlib.contextmanager
def asked_for_states() -> Iterator[list[str]]:
    """The functions by which somebody inside asks for a state, where others draw.

    What is made of it (a generator of one's own, numbers that are drawn and taken back) depends on
    how the three are seeded all the same.
    """
    asked: list[str] = []

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*values: Any, **named: Any) -> Any:
            asked.append(name)
            return function(*values, **named)

        return noted

    names = [(where, name) for where in (torch, torch.random) for name in _ASK_TORCH]
    names += [(random, "getstate"), *([(numpy.random, "get_state")] if numpy else [])]
    before = [(where, name, getattr(where, name)) for where, name in names]
    try:
        for where, name, function in before:
            setattr(where, name, noting(name, function))
        yield asked
    finally:
        for where, name, function in before:
            setattr(where, name, function)


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
        self._without_normal = b""

    def begin(self) -> States | None:
        """As they are now. None where draws cannot be told so: another Python or bit generator, or
        NumPy keeps a second normal number, which can be drawn unseen.
        """
        self._find_numpy()
        if self._of_python is None or (numpy is not None and self._of_numpy is None):
            return None
        now = self.now()
        if now.numpy != self._without_normal:
            if numpy is not None and numpy.random.get_state(legacy=False)["has_gauss"]:
                return None
            self._without_normal = now.numpy
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

    @staticmethod
    def put_back(states: States, which: frozenset[str]) -> None:
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
