"""Where the random numbers of this process have come to: python, numpy, torch, CUDA.

Kept as tensors and numbers, so that `torch.load(weights_only=True)` takes them. Each rank has its
own. Not covered: generators that a script made itself (a loader keeps its own position), and the
state of other devices than CUDA's current one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import torch

# python's version 3 of random.getstate: 624 words of the Mersenne twister and the place in them.
_PYTHON_VERSION = 3
_FACTOR = 1_000_003


def capture_rng() -> dict[str, Any]:
    """This process's states; numpy's where it is installed, CUDA's where it is in use."""
    version, words, gauss = random.getstate()
    found = {
        "python": {"version": version, "words": torch.tensor(words), "gauss": gauss},
        "torch": torch.get_rng_state(),
    }
    if (numpy := _numpy()) is not None:
        _, keys, place, has_gauss, cached = numpy.random.get_state()
        found["numpy"] = {
            "words": torch.tensor(keys.astype("int64")),
            "place": int(place),
            "has_gauss": int(has_gauss),
            "gauss": float(cached),
        }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def restore_rng(saved: dict[str, Any]) -> list[str]:
    """Put this process where `capture` was; what could not be restored, a sentence each."""
    python = saved["python"]
    if python["version"] != _PYTHON_VERSION:
        return [f"random numbers of python: version 3 was expected, found {python['version']}"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    torch.set_rng_state(saved["torch"].clone())
    return [*_restore_numpy(saved.get("numpy")), *_restore_cuda(saved.get("cuda"))]


def rng_for_rank(saved: Sequence[dict[str, Any]], rank: int) -> dict[str, Any] | None:
    """What a rank goes on from; None for one that was not there when it was saved.

    Ranks that all had the same state (each draws the whole batch's noise) stay the same.
    """
    if rank < len(saved):
        return saved[rank]
    first = saved[0]["torch"]
    are_same = len(saved) > 1 and all(torch.equal(first, other["torch"]) for other in saved)
    return saved[0] if are_same else None


def draw_rng_anew(saved: dict[str, Any], step: int, rank: int) -> None:
    """Seed a rank that has no state of its own: from rank 0's, the step and its rank alone."""
    seed = int(saved["torch"].to(torch.int64).sum())
    seed = ((seed * _FACTOR + step) * _FACTOR + rank) % 2**32
    random.seed(seed)
    torch.manual_seed(seed)
    if (numpy := _numpy()) is not None:
        numpy.random.seed(seed)


def _restore_numpy(saved: dict[str, Any] | None) -> list[str]:
    numpy = _numpy()
    if saved is None or numpy is None:
        # A script that never drew from numpy loses nothing, so a box without it may go on.
        return []
    words = saved["words"].numpy().astype("uint32")
    state = ("MT19937", words, saved["place"], saved["has_gauss"], saved["gauss"])
    numpy.random.set_state(state)
    return []


def _restore_cuda(saved: torch.Tensor | None) -> list[str]:
    if saved is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved.clone())
    return []


def _numpy() -> Any:
    """torch imports it where it is installed; where it is not, nobody has drawn from it."""
    if "numpy" in sys.modules:
        return sys.modules["numpy"]
    try:
        import numpy
    except ImportError:
        return None
    return numpy
