"""What was loaded, as a tree of names, and what torch, else NumPy, found in its numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from boxcar.shared.sentence import _, chained, mark
from boxcar.training.load_check.stand_ins import Array

_NAMED = 10
# Under these names of a checkpoint stand weights, in which no Inf is a bound.
_WEIGHTS = ("state_dict", "model", "model_state_dict", "module", "net", "params", "weights", "ema")


@dataclass(frozen=True)
class Look:
    """One tensor. `problem` says where it is not finite; the -inf of a mask is none, nor is the Inf
    of a bound that nothing has reached yet, such as the best score of a callback.
    """

    path: str
    values: int
    size_bytes: int
    problem: str | None = None
    is_mask: bool = False
    is_bound: bool = False
    is_unlooked: bool = False


@dataclass(frozen=True)
class Survey:
    """All tensors of a file, and how many other values there are beside them."""

    looks: tuple[Look, ...]
    others: int

    @property
    def is_empty(self) -> bool:
        return not self.looks and not self.others

    @property
    def problems(self) -> list[str]:
        found = [look.problem for look in self.looks if look.problem]
        more = len(found) - _NAMED
        return found[:_NAMED] + (
            [_("{more} more tensors are not as they should be", more=more)] * (more > 0)
        )

    @property
    def facts(self) -> dict[str, Any]:
        """`parameters` counts the values of all tensors, those of an optimizer too."""
        named = {
            "masks": [look.path for look in self.looks if look.is_mask],
            "bounds": [look.path for look in self.looks if look.is_bound],
            "unlooked": [look.path for look in self.looks if look.is_unlooked],
        }
        return {
            "tensors": len(self.looks),
            "parameters": sum(look.values for look in self.looks),
            "bytes": sum(look.size_bytes for look in self.looks),
        } | {word: paths[:_NAMED] for word, paths in named.items() if paths}


class Counts(NamedTuple):
    nan: int
    plus_inf: int
    minus_inf: int
    finite: int
    nonzero: int  # of the finite ones; at least 1 where there are any


def judged(look: Look, counts: Counts, *, is_single: bool) -> Look:
    """The look with what the counts say. `is_single`: it is one number, and no list of them."""
    if is_single and _is_bound(counts, look.path):
        return replace(look, is_bound=True)
    return replace(look, is_mask=_is_mask(counts), problem=_problem(counts, look))


def _problem(counts: Counts, look: Look) -> str | None:
    infinite = counts.plus_inf + counts.minus_inf
    if not (counts.nan or infinite) or _is_mask(counts):
        return None
    kinds = ((counts.nan, "NaN"), (infinite, "Inf"))
    counted = [f"{count} {word}" for count, word in kinds if count]
    found = chained(mark("{first} and {second}"), counted)
    return _(
        "{path} holds {found} among {values} values",
        path=look.path,
        found=found,
        values=look.values,
    )


def _is_mask(counts: Counts) -> bool:
    """-inf where something is masked and 0 elsewhere, as attention adds it to its scores."""
    others = counts.nan or counts.plus_inf or counts.nonzero
    return counts.minus_inf > 0 and counts.finite > 0 and not others


def _is_bound(counts: Counts, path: str) -> bool:
    """One Inf beside the weights: where a search for the least or the most begins."""
    head, _, rest = path.partition(".")
    return not counts.nan and not counts.finite and bool(rest) and head not in _WEIGHTS


# --- The sense of arrays where there is no torch: as `tensors` looks at them, by NumPy alone.
# A project of scikit-learn has NumPy and no torch. Where there is neither, nothing is looked at,
# and the findings say so.


_CHUNK = 1 << 18


def survey_arrays(leaves: Iterable[tuple[str, Any]]) -> Survey:
    """Raises ImportError where there is no NumPy for an array to be looked at."""
    looks, others = [], 0
    for path, leaf in leaves:
        array = _as_array(leaf)
        if array is None:
            others += 1
        else:
            looks.append(look_at_array(path or _("the array"), array))
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


# --- What was loaded, as a tree of names: its leaves, and whether a dotted key is in it.
# Pure, and without torch. The tree came from a file that may be damaged or made to harm: it may be
# very deep, hold itself, or have names that are no text.


LONGEST_PATH = 200
_NAMES_SHOWN = 8
_LONGEST_NAME = 40


def tree_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its dotted path, one after the other.

    A container that is met again, in itself or elsewhere, is walked once.
    """
    if not _is_container(tree):
        yield "", tree
        return
    # The containers are kept, not only their ids: an id is free again when its object is gone.
    met = {id(tree): tree}
    stack = [("", _children(tree))]
    while stack:
        path, children = stack[-1]
        name, child = next(children, (None, None))
        if name is None:
            stack.pop()
        elif not _is_container(child):
            yield _join(path, name), child
        elif id(child) not in met:
            met[id(child)] = child
            stack.append((_join(path, name), _children(child)))


def missing_keys(tree: Any, keys: Iterable[str]) -> list[str]:
    """One sentence for each key that is not there."""
    return [
        _("lacks the key {key!r}; {tree}", key=key, tree=_holds(tree))
        for key in keys
        if not has_key(tree, key)
    ]


def has_key(tree: Any, key: str) -> bool:
    """Whether `model.encoder` is there: as a path, as one name, or as the start of such names.

    The last is how a state dict spells a module: `encoder.0.weight`.
    """
    if not _is_container(tree):
        return False
    for name, raw in _names(tree):
        if name == key or name.startswith(f"{key}."):
            return True
        rest = key[len(name) + 1 :]
        if key.startswith(f"{name}.") and has_key(_opened(tree)[raw], rest):
            return True
    return False


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple, set, frozenset)) or _has_state(value)


def _has_state(value: Any) -> bool:
    """Models, optimizers and schedulers, which only a file that may run code can hold."""
    return not isinstance(value, type) and callable(getattr(value, "state_dict", None))


def _opened(value: Any) -> Any:
    if _has_state(value):
        return value.state_dict()
    return list(value) if isinstance(value, (set, frozenset)) else value


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    opened = _opened(value)
    return ((name, opened[raw]) for name, raw in _names(opened))


def _names(value: Any) -> Iterator[tuple[str, Any]]:
    opened = _opened(value)
    raw_names = opened if isinstance(opened, Mapping) else range(len(opened))
    return ((_as_text(raw), raw) for raw in raw_names)


def _as_text(raw: Any) -> str:
    return str(raw) if isinstance(raw, (str, int, float)) else type(raw).__name__


def _join(path: str, name: str) -> str:
    joined = f"{path}.{name}" if path else name
    return joined if len(joined) <= LONGEST_PATH else joined[: LONGEST_PATH - 1] + "…"


def _holds(tree: Any) -> str:
    names = [name for name, _ in _names(tree)] if _is_container(tree) else []
    if not names:
        return _("it holds none")
    shown = ", ".join(name[:_LONGEST_NAME] for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    if more > 0:
        return _("it holds {shown} and {more} more", shown=shown, more=more)
    return _("it holds {shown}", shown=shown)
