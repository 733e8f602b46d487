"""Two saved states, value by value: what differs, by how much, and which part of the state it is.

Pure. Bit-equal means the same bits of the same type and shape, NaN included. Numbers that stand for
a quantity may differ within a tolerance, measured against the largest magnitude of their tensor;
RNG states, counters and other whole numbers may not.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boxcar.shared.disk import digest
from boxcar.shared.sentence import _, quotation

# --- The files that a cell left, as trees that can be compared.
# Pickles are not trusted: torch.load runs with weights_only=True, NumPy without pickles. What
# cannot be read as a tree is compared by its bytes, and that is said.


_TORCH = (".pth", ".pt", ".ckpt", ".bin")


def load_left(path: Path) -> tuple[Any, str]:
    """The tree of a file or folder, and why its bytes stand for it ('' where they do not)."""
    if path.is_dir():
        files = sorted(item for item in path.rglob("*") if item.is_file())
        names = {item.relative_to(path).as_posix(): digest.of_file(item) for item in files}
        return names, _("a folder is compared by the bytes of its files")
    try:
        return _read(path), ""
    # A damaged file fails inside zip, pickle, torch or NumPy, each with exceptions of its own.
    except Exception as error:
        why = _("compared by its bytes, as {why}", why=_why(error))
        return {"bytes": digest.of_file(path)}, why


def _why(error: Exception) -> str:
    """torch puts its reason into the middle of advice on how to load the file all the same."""
    reason = re.search(r"WeightsUnpickler error:\s*(.+)", str(error))
    if reason:
        said = quotation(reason[1].strip())
        return _("it would run code when it is loaded ({said})", said=said)
    said = quotation((str(error) or type(error).__name__).splitlines()[0])
    return _("it cannot be read: {said}", said=said)


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return json.loads(path.read_bytes())
    if suffix in _TORCH:
        import torch

        return torch.load(path, map_location="cpu", weights_only=True)
    if suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(str(path))
    if suffix in (".npy", ".npz"):
        import numpy

        loaded = numpy.load(path, allow_pickle=False)
        return dict(loaded) if suffix == ".npz" else loaded
    return {"bytes": digest.of_file(path)}


_LONGEST_TEXT = 60
ABSENT = "(not there)"
# Adam counts its steps as a fraction: what has one of these names must be exact in any type.
_COUNTERS = {"step", "steps", "epoch", "epochs", "iteration", "iterations", "iter", "global_step"}
_GENERATORS = {"rng", "rngs", "random", "generator", "generators"}
_CLOCK = {
    *("seconds", "secs", "sec", "minutes", "hours", "ms", "time", "times", "timestamp", "date"),
    *("datetime", "duration", "elapsed", "wall", "wallclock", "at", "eta", "throughput", "speed"),
    *("started", "ended", "created"),
}
_STARTS = {"starts", "restarts", "attempt", "attempts", "resumes", "pid"}
_NAMES = {"id", "uuid", "host", "hostname"}
_PER = {"s", "sec", "second", "min", "minute", "hour", "h"}
# `time_step` and `time_embedding_dim` are no readings of a clock.
_NO_CLOCK = _COUNTERS | {"dim", "embedding", "embed", "size", "num"}


@dataclass(frozen=True)
class Difference:
    """One value that is not bit-equal. `relative` is None where no tolerance applies.

    `kind` is the part of the state, the first name on the path. `whole` and `killed` are the values
    of the uninterrupted and the killed run, or what they are. `gap` is killed less whole, of two
    single numbers.
    """

    path: str
    kind: str
    whole: str
    killed: str
    relative: float | None = None
    gap: float | None = None
    is_within: bool = False


@dataclass(frozen=True)
class Compared:
    """What a look at two trees gave. `of_one_run`: what differs between any two runs, as
    a clock does, by path; it is not judged.
    """

    values: int = 0
    differences: tuple[Difference, ...] = ()
    of_one_run: tuple[str, ...] = ()


def compare(whole: Any, killed: Any, tolerance: float) -> Compared:
    """Compare two trees of dicts, lists, tensors [any shape], NumPy arrays, numbers and texts."""
    values, differences, of_one_run = 0, [], []
    for path, one, other in _pairs((), whole, killed):
        values += 1
        if _is_same(one, other):
            continue
        if not _is_array(one) and is_of_one_run(path, one):
            of_one_run.append(".".join(path))
        else:
            differences.append(_difference(path, one, other, tolerance))
    return Compared(values, tuple(differences), tuple(of_one_run))


def without_unseeded(compared: Compared, at_kill: Any, killed: Any) -> Compared:
    """Without the RNG states that the killed run took over from its last save and never drew from.

    They were restored; that they differ from the uninterrupted run's says that the script seeds no
    such generator, and no number depends on it.
    """
    drawn = {item.path for item in compare(at_kill, killed, 0.0).differences}
    kept = [d for d in compared.differences if not is_rng(d.path) or d.path in drawn]
    unseeded = [item.path for item in compared.differences if item not in kept]
    return replace(compared, differences=tuple(kept), of_one_run=(*compared.of_one_run, *unseeded))


def is_rng(path: str) -> bool:
    """Whether the dotted path leads to the state of a random generator, as it is usually named."""
    return bool(_words(path) & _GENERATORS)


def is_of_one_run(path: tuple[str, ...], value: object) -> bool:
    """Whether every run has its own: a reading of a clock, a random name, the number of starts.

    Told by the last name on the way. A number of a class has an id too: only texts are names.
    """
    name = path[-1] if path else ""
    words = _words(name)
    if ("per" in words and words & _PER) or words & _STARTS:
        return True
    if words & _NAMES and isinstance(value, str):
        return True
    is_clock = bool(words & _CLOCK) or name.endswith("_s")
    return is_clock and not words & _NO_CLOCK


def _words(name: str) -> set[str]:
    """`rngCuda`, `rng_cuda` and `rng.cuda` all hold the word rng."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word}


def _pairs(
    path: tuple[str, ...], one: Any, other: Any
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Each leaf of either tree, with its partner or ABSENT."""
    if _is_branch(one) and _is_branch(other):
        left, right = _children(one), _children(other)
        for name in dict.fromkeys([*left, *right]):
            yield from _pairs((*path, name), left.get(name, ABSENT), right.get(name, ABSENT))
    else:
        yield path, one, other


def _is_branch(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _children(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(name): child for name, child in value.items()}
    return {str(index): child for index, child in enumerate(value)}


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _bits(value: Any) -> tuple[Any, ...]:
    """Type, shape and bytes of a tensor or array."""
    import numpy

    if hasattr(value, "detach"):
        import torch

        dense = value.detach().cpu() if value.layout == torch.strided else value.detach().to_dense()
        flat = dense.contiguous().reshape(-1)
        # bfloat16 has no NumPy type: the bytes have.
        return str(value.dtype), tuple(value.shape), flat.view(torch.uint8).numpy().tobytes()
    return str(value.dtype), tuple(value.shape), numpy.ascontiguousarray(value).tobytes()


def _is_same(one: Any, other: Any) -> bool:
    if _is_array(one) or _is_array(other):
        return _is_array(one) and _is_array(other) and _bits(one) == _bits(other)
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and bool(one == other)


def _difference(path: tuple[str, ...], one: Any, other: Any, tolerance: float) -> Difference:
    where = ".".join(path) or "(the whole)"
    is_exact = is_rng(where) or where.rpartition(".")[2].lower() in _COUNTERS
    relative = None if is_exact else _relative(one, other)
    is_within = relative is not None and relative <= tolerance
    # Of a flat state dict, whose names have dots: the module.
    kind = path[0].partition(".")[0] if path else where
    return Difference(
        where, kind, _shown(one), _shown(other), relative, _gap(one, other), is_within
    )


def _relative(one: Any, other: Any) -> float | None:
    """The largest difference over the largest magnitude; None for what must be exact."""
    if _is_array(one) and _is_array(other):
        is_fraction = "float" in str(one.dtype) and one.dtype == other.dtype
        return _relative_arrays(one, other) if is_fraction and one.shape == other.shape else None
    if isinstance(one, float) and isinstance(other, float):
        if not (math.isfinite(one) and math.isfinite(other)):
            return None
        return abs(one - other) / max(abs(one), abs(other), 5e-324)
    return None


def _relative_arrays(one: Any, other: Any) -> float | None:
    import torch

    left, right = (
        torch.as_tensor(value).detach().to("cpu", torch.float64) for value in (one, other)
    )
    if not bool(torch.isfinite(left).all() and torch.isfinite(right).all()):
        return None
    most = max(float(left.abs().max()), float(right.abs().max()))
    return float((left - right).abs().max()) / most if most else 0.0


def _gap(one: Any, other: Any) -> float | None:
    first, second = _number(one), _number(other)
    return second - first if first is not None and second is not None else None


def _number(value: Any) -> float | None:
    if _is_array(value):
        is_single = math.prod(value.shape) == 1
        return float(value.item()) if is_single and "complex" not in str(value.dtype) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None


def _shown(value: Any) -> str:
    if (number := _number(value)) is not None:
        return f"{number:.9g}"
    if _is_array(value):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if _is_branch(value):
        return f"{type(value).__name__} of {len(value)}"
    return str(value)[:_LONGEST_TEXT]
