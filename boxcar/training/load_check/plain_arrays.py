"""The sense of arrays where there is no torch: as `tensors` looks at them, by NumPy alone.

A project of scikit-learn has NumPy and no torch. Where there is neither, nothing is looked at, and
the findings say so.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from boxcar.training.load_check.stand_ins import Array
from boxcar.training.load_check.survey import Counts, Look, Survey, judged

_CHUNK = 1 << 18


def survey_arrays(leaves: Iterable[tuple[str, Any]]) -> Survey:
    """Raises ImportError where there is no NumPy for an array to be looked at."""
    looks, others = [], 0
    for path, leaf in leaves:
        array = _as_array(leaf)
        if array is None:
            others += 1
        else:
            looks.append(look_at_array(path or "the array", array))
    return Survey(tuple(looks), others)


def look_at_array(path: str, array: Any) -> Look:
    """Count what is not finite in one array; of text, dates and objects only its size counts."""
    look = Look(path, array.size, array.nbytes)
    if array.dtype.kind not in "fc" or not array.size:
        return look
    flat = array.reshape(-1)
    pieces = (flat[at : at + _CHUNK] for at in range(0, flat.size, _CHUNK))
    total = Counts(*(sum(column) for column in zip(*map(_count, pieces), strict=True)))
    return judged(look, total, is_single=not array.ndim)


def _count(piece: Any) -> Counts:
    import numpy

    parts = numpy.concatenate([piece.real, piece.imag]) if piece.dtype.kind == "c" else piece
    finite = numpy.isfinite(parts)
    kinds = (
        numpy.isnan(parts),
        parts == math.inf,
        parts == -math.inf,
        finite,
        finite & (parts != 0),
    )
    return Counts(*(int(kind.sum()) for kind in kinds))


def _as_array(leaf: Any) -> Any:
    """None for what is no array of numbers."""
    if isinstance(leaf, Array):
        import numpy

        return numpy.frombuffer(leaf.data, dtype=f"<{leaf.number}") if leaf.number else None
    numpy_here = sys.modules.get("numpy")
    is_array = numpy_here is not None and isinstance(leaf, numpy_here.ndarray)
    return leaf if is_array and leaf.dtype.kind in "biufc" else None
