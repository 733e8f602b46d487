"""The generators of python, NumPy and torch (the CPU's): seeded, and put back."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from types import ModuleType

import torch

# Imported before the first sample, not when a dataset does: that one would draw unseeded numbers.
numpy: ModuleType | None
try:
    import numpy
except ImportError:  # torch works without it, and then nobody draws from it
    numpy = None

PYTHON, NUMPY, TORCH = "python", "numpy", "torch"
ALL = frozenset((PYTHON, NUMPY, TORCH))


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
