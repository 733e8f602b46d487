"""What a look at the numbers of a file found, whoever counted them: torch, else NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
        return found[:_NAMED] + ([f"{more} more tensors are not as they should be"] * (more > 0))

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
    found = " and ".join(f"{count} {word}" for count, word in kinds if count)
    return f"{look.path} holds {found} among {look.values} values"


def _is_mask(counts: Counts) -> bool:
    """-inf where something is masked and 0 elsewhere, as attention adds it to its scores."""
    others = counts.nan or counts.plus_inf or counts.nonzero
    return counts.minus_inf > 0 and counts.finite > 0 and not others


def _is_bound(counts: Counts, path: str) -> bool:
    """One Inf beside the weights: where a search for the least or the most begins."""
    head, _, rest = path.partition(".")
    return not counts.nan and not counts.finite and bool(rest) and head not in _WEIGHTS
