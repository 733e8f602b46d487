"""Whether somebody asks for a generator's state, where others draw from it.

What is made of it (a generator of one's own, numbers that are drawn and taken back) depends on how
the generators are seeded, and moves none of them. So the functions by which it is asked count their
calls, from the first batch of a process on; what they return is as before.

Not seen: who has such a function in a place of its own other than a module's name for it, and who
asks `torch.default_generator` itself.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from boxcar.training.data.generators import numpy

# `fork_rng` asks by the second one. NumPy's may be set to a state of which the watch cannot tell.
_OF_TORCH, _OF_PYTHON = ("initial_seed", "get_rng_state"), ("getstate",)
_OF_NUMPY = ("get_state", "set_state")
_OWNERS = ("torch", "random", "numpy")


class AskedStates:
    """In this process. Safe from any thread: one that asks meanwhile is counted as well."""

    def __init__(self) -> None:
        self.count = 0
        # Whether somebody had imported such a function by its name before its calls were counted.
        self.may_be_unseen = False
        self._are_counted = False

    def begin(self) -> None:
        """Calls are counted from here on."""
        if not self._are_counted:
            self._are_counted = True
            held = [_is_held(*self._wrap(one)) for one in _all()]
            self.may_be_unseen = any(held)

    def _wrap(self, one: tuple[tuple[ModuleType, ...], str]) -> tuple[str, Callable[..., Any]]:
        places, name = one
        own: Callable[..., Any] = getattr(places[0], name)

        @functools.wraps(own)
        def counted(*values: Any, **named: Any) -> Any:
            self.count += 1
            return own(*values, **named)

        for place in places:
            setattr(place, name, counted)
        return name, own


def _all() -> list[tuple[tuple[ModuleType, ...], str]]:
    """Each function, and the modules that show it."""
    found: list[tuple[tuple[ModuleType, ...], str]] = [
        *(((torch, torch.random), name) for name in _OF_TORCH),
        *(((random,), name) for name in _OF_PYTHON),
    ]
    return [*found, *(((numpy.random,), name) for name in _OF_NUMPY)] if numpy else found


def _is_held(name: str, own: Callable[..., Any]) -> bool:
    """By a module of somebody else's."""
    modules = ((key.partition(".")[0], module) for key, module in [*sys.modules.items()])
    return any(
        getattr(module, "__dict__", {}).get(name) is own
        for owner, module in modules
        if owner not in _OWNERS
    )


ASKED = AskedStates()
