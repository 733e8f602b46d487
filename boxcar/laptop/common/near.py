"""Names that people typed: which known one was meant, and what is said of one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from boxcar.shared.catalogue.sentence import Sentence, sentence_or_text
from boxcar.shared.errors import InputError

_MOST_LISTED = 12


def did_you_mean(word: str, known: Iterable[str], spelled: Mapping[str, str] | None = None) -> str:
    """` (did you mean 'artifacts'?)`, or '' where nothing is near. `spelled`: how a known name is
    shown, where it is typed otherwise.
    """
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    if not near:
        return ""
    return Sentence("mistakes.near", name=(spelled or {}).get(near[0], near[0]))


def no_such(name: str, known: Iterable[str], *, what: str, of: str) -> str:
    """`the run digits has no cell 'recom' (did you mean 'recon'?); it has: class, recon`."""
    there = list(dict.fromkeys(known))
    return Sentence(
        "mistakes.no_such",
        of=of,
        what=sentence_or_text(f"mistakes.{what}", what),
        name=name,
        near=did_you_mean(name, there),
        there=_listed(there),
    )


def the_run(name: str) -> Sentence:
    """What has cells, queues and boxes, for `no_such` and `pick`."""
    return Sentence("mistakes.the_run", run=name)


def _listed(names: Sequence[str]) -> str:
    first, more = ", ".join(names[:_MOST_LISTED]), len(names) - _MOST_LISTED
    if more > 0:
        return Sentence("mistakes.and_more", names=first, n=more)
    return first or Sentence("mistakes.none")


def pick(names: Sequence[str], known: Iterable[str], *, what: str, of: str) -> list[str]:
    """`names`, each once. Raises InputError with a sentence for each that is not known."""
    there = list(known)
    if unknown := [name for name in names if name not in there]:
        raise InputError([no_such(name, there, what=what, of=of) for name in unknown])
    return list(dict.fromkeys(names))
