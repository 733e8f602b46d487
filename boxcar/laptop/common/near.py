"""Names that people typed: which known one was meant, and what is said of one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from boxcar.shared.errors import InputError
from boxcar.shared.message import some

_MOST_LISTED = 12


def did_you_mean(word: str, known: Iterable[str], spelled: Mapping[str, str] | None = None) -> str:
    """` (did you mean 'artifacts'?)`, or '' where nothing is near. `spelled`: how a known name is
    shown, where it is typed otherwise.
    """
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {(spelled or {}).get(near[0], near[0])!r}?)" if near else ""


def no_such(name: str, known: Iterable[str], *, what: str, of: str) -> str:
    """`the run digits has no cell 'recom' (did you mean 'recon'?); it has: class, recon`."""
    there = list(dict.fromkeys(known))
    listed = some(there, _MOST_LISTED) or "none"
    return f"{of} has no {what} {name!r}{did_you_mean(name, there)}; it has: {listed}"


def pick(names: Sequence[str], known: Iterable[str], *, what: str, of: str) -> list[str]:
    """`names`, each once. Raises InputError with a sentence for each that is not known."""
    there = list(known)
    if unknown := [name for name in names if name not in there]:
        raise InputError([no_such(name, there, what=what, of=of) for name in unknown])
    return list(dict.fromkeys(names))
