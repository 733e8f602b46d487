"""joblib's own format: a pickle in which arrays lie raw, behind a word of joblib's that says so.

Read without joblib and without NumPy: what stands in for that word takes the bytes that follow it.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

from boxcar.training.load_check.stand_ins import Array, DType, Fixed

JOBLIB_HOME = "joblib.numpy_pickle"
JOBLIB_WORD = f"{JOBLIB_HOME}.NumpyArrayWrapper"
# A damaged file that claims to hold more than it is large ends at its end, and takes no memory.
_ARRAY_CHUNK_BYTES = 1 << 20


def raw_array_stand_in(read: Callable[[int], bytes], load_pickle: Callable[[], object]) -> type:
    """For one file. `read` goes on where the pickle stands, `load_pickle` reads another there."""

    def set_state(self: Array, state: Any) -> None:
        shape, dtype = state["shape"], state["dtype"]
        if not isinstance(dtype, DType):
            raise pickle.UnpicklingError("holds an array of no type")
        if dtype.has_objects:
            load_pickle()
            return
        if state.get("numpy_array_alignment_bytes") is not None:
            _exactly(read, _exactly(read, 1)[0])
        self.fill(shape, dtype, _exactly(read, _size_bytes(shape, dtype)))

    body = {"__slots__": (), "__setstate__": set_state}
    return Fixed("NumpyArrayWrapper", (Array,), body)


def _size_bytes(shape: Any, dtype: DType) -> int:
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
        raise pickle.UnpicklingError("holds an array of no shape")
    if dtype.stored_bytes is None:
        raise pickle.UnpicklingError(f"holds an array of {dtype.spelled!r}, which is of no size")
    return math.prod(shape) * dtype.stored_bytes


def _exactly(read: Callable[[int], bytes], size_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size_bytes:
        more = read(min(_ARRAY_CHUNK_BYTES, size_bytes - len(data)))
        if not more:
            raise EOFError(f"an array of {size_bytes} bytes ends after {len(data)}")
        data += more
    return bytes(data)
