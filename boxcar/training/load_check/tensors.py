"""The sense of tensors: how many there are, and where they hold NaN or Inf.

Memory is bounded by a chunk, however large a tensor is: a checkpoint that is mapped into memory is
never copied. Work is bounded by what is stored: a tensor that repeats one value a billion times is
looked at once.

Not covered: quantized tensors, and types that torch cannot compare (float4), which are counted and
named in `unlooked`; NumPy arrays of a type that torch does not have.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from boxcar.shared.sentence import _
from boxcar.training import torch_private
from boxcar.training.load_check.stand_ins import Array
from boxcar.training.load_check.survey import Counts, Look, Survey, judged

# Values at a time: as many as stay in a processor's cache.
_CHUNK = 1 << 18
_DTYPES = {
    "b1": torch.bool,
    "u1": torch.uint8,
    "i1": torch.int8,
    "i2": torch.int16,
    "i4": torch.int32,
    "i8": torch.int64,
    "f2": torch.float16,
    "f4": torch.float32,
    "f8": torch.float64,
    "c8": torch.complex64,
    "c16": torch.complex128,
}


def survey(leaves: Iterable[tuple[str, Any]]) -> Survey:
    """Look at each leaf and let go of it: they may be read one by one."""
    looks, others = [], 0
    for path, leaf in leaves:
        tensor = _as_tensor(leaf)
        if tensor is None:
            others += 1
        else:
            looks.append(look_at(path or _("the tensor"), tensor))
    return Survey(tuple(looks), others)


def distinct(leaves: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Without the tensors that show what an earlier one showed, such as tied weights.

    Only for leaves that are all alive at once: where they are read one by one, the next tensor may
    lie in memory where the last one was.
    """
    met = set()
    for path, leaf in leaves:
        if isinstance(leaf, torch.Tensor) and _has_place(leaf):
            place = (leaf.data_ptr(), leaf.shape, leaf.stride(), leaf.dtype)
            if place in met:
                continue
            met.add(place)
        yield path, leaf


def look_at(path: str, tensor: torch.Tensor) -> Look:
    """Count what is not finite in one tensor, whatever its type and strides."""
    values = _flat(_stored(tensor.detach()))
    size_bytes = values.numel() * values.element_size()
    look = Look(path, values.numel(), size_bytes)
    if values.is_meta:
        return replace(look, problem=_("{path} has a shape but no data (a meta tensor)", path=path))
    if not (values.is_floating_point() or values.is_complex()) or not values.numel():
        return replace(look, is_unlooked=values.is_quantized)
    try:
        counts = _count(values)
    except NotImplementedError:
        return replace(look, is_unlooked=True)
    return judged(look, counts, is_single=not tensor.dim())


def _as_tensor(leaf: Any) -> torch.Tensor | None:
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, Array):
        return _of_array(leaf)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(leaf, numpy.ndarray):
        return None
    try:
        return torch.from_numpy(leaf)
    except (TypeError, ValueError):
        return None


def _of_array(array: Array) -> torch.Tensor | None:
    """What was read of an array without NumPy; None for types that torch does not have."""
    dtype = _DTYPES.get(array.number or "")
    if dtype is None:
        return None
    data = bytearray(array.data)
    return torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)


def _has_place(tensor: torch.Tensor) -> bool:
    is_strided = tensor.layout == torch.strided and not tensor.is_nested
    return is_strided and not tensor.is_meta and tensor.numel() > 0


def _stored(tensor: torch.Tensor) -> torch.Tensor:
    """The values that a sparse or nested tensor keeps; every other one is itself."""
    if tensor.layout == torch.sparse_coo:
        return torch_private.sparse_values(tensor)
    is_strided = tensor.layout == torch.strided and not tensor.is_nested
    return tensor if is_strided else tensor.values()


def _count(tensor: torch.Tensor) -> Counts:
    counts = [_count_piece(_as_real(piece)) for piece in _pieces(tensor)]
    return Counts(*(sum(column) for column in zip(*counts, strict=True)))


def _count_piece(piece: torch.Tensor) -> Counts:
    # One pass instead of isfinite's four: NaN and Inf show in the smallest or largest value.
    low, high = (float(end) for end in torch.aminmax(piece))
    if math.isfinite(low) and math.isfinite(high):
        return Counts(0, 0, 0, piece.numel(), int(low != 0 or high != 0))
    finite = piece.isfinite()
    kinds = (piece.isnan(), piece == math.inf, piece == -math.inf, finite, finite & (piece != 0))
    return Counts(*(int(kind.sum()) for kind in kinds))


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """One dimension over the same memory, unless the strides leave holes in it."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    span = 1 + sum((length - 1) * stride for length, stride in steps)
    if not tensor.numel() or tensor.is_quantized or span > tensor.numel():
        return tensor
    return tensor.as_strided((span,), (1,), tensor.storage_offset())


def _pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Views of at most a chunk: the longest dimension is halved until they are."""
    if tensor.numel() <= _CHUNK:
        yield tensor
        return
    longest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
    for half in tensor.tensor_split(2, longest):
        yield from _pieces(half)


def _as_real(piece: torch.Tensor) -> torch.Tensor:
    if piece.is_complex():
        return torch.view_as_real(piece.resolve_conj())
    # Most one-byte floats cannot be compared.
    return piece.float() if piece.element_size() == 1 else piece
